// Collections of images in files, one file of code for each form. They are listed unit by unit (a folder of a class, an
// archive), so that ranks can share that work; then images are read in any order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/import/packed.hpp"
#include "data/passed_over.hpp"

namespace echelon::inline data {

struct ImageItem {
  std::int32_t unit = 0;
  std::int32_t label = 0;   // number of the class; while a unit is listed, in its `classes` where it has names
  std::string name;         // of the file, below the folder of its class, or of the member
  std::int64_t offset = 0;  // in the archive
  std::int64_t bytes = 0;
  std::uint64_t stamp = 0;  // of size and time of change of the file that holds it: another stamp, another content
};

struct ImageUnit {
  std::vector<ImageItem> items;
  std::vector<std::string> classes;  // named ones; empty: labels are numbers
  std::vector<std::string> damaged;  // what was left out, a line each
  std::vector<PassedOver> passed{};  // what is no image
};

// For other ranks; `unit` is that of its items.
void put(Packing& packing, const ImageUnit& unit);
ImageUnit get_unit(Unpacking& packed, std::int32_t unit);

class ImageInput {
 public:
  virtual ~ImageInput() = default;
  virtual const std::vector<std::string>& units() const = 0;  // class folders, archives; for people
  // What a unit holds, in a fixed order. What cannot be used is a DataError with its place, or, where damage is
  // skipped, a line of `damaged`.
  virtual ImageUnit list(std::size_t unit) = 0;
  virtual std::vector<PassedOver> passed_over() const { return {}; }  // beside all units
  // Whether read() takes about as long in any order, so that samples can be mixed before they are written.
  virtual bool reads_anywhere() const = 0;
  virtual std::string read(const ImageItem& item) = 0;  // its bytes. DataError
  virtual std::string place(const ImageItem& item) const = 0;
};

struct ImageRequest {
  std::string format{};               // images | tar
  std::vector<std::string> inputs{};  // images: one folder of <class>/<file>.jpg, .jpeg, .png; tar: archives
  int height = 0, width = 0;          // of samples; 0: that of the first image, which all others must have
  int channels = 3;                   // 1 or 3
  bool skip_damaged = false;          // leave out what cannot be used
  bool labels_as_they_are = false;    // do not refuse labels and names that are unlike classes
  std::string like{};                 // a set whose classes, mean and std are taken over; "": none
};

// ConfigError for inputs that do not fit the format, DataError where they cannot be read.
std::unique_ptr<ImageInput> open_images(const ImageRequest& request);
std::unique_ptr<ImageInput> open_image_folder(const ImageRequest& request);
std::unique_ptr<ImageInput> open_image_archives(const ImageRequest& request);

// Of a file name: whether it ends in .jpg, .jpeg or .png, in any case; names that begin with a dot do not count.
bool is_image_name(const std::string& name);
// The kind as which a file that is no image by its name is passed over. Images of other forms are told as such.
std::string other_file(const std::string& name);
// A file's size in bytes, and its stamp. DataError where it cannot be read.
struct FileStamp {
  std::int64_t bytes = 0;
  std::uint64_t stamp = 0;
};
FileStamp stamp_of(const std::string& path);

}  // namespace echelon::inline data
