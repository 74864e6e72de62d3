// SPDX-License-Identifier: Apache-2.0
// Collections of images in files; each form has its own source file. They are listed unit by unit (a class folder or an
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
  std::int32_t label = 0;   // class number; while a unit is listed, the index in its `classes` if those have names
  std::string name;         // path below the folder of its class, or name of the archive member
  std::int64_t offset = 0;  // byte offset in the archive
  std::int64_t bytes = 0;
  std::uint64_t stamp = 0;  // from size and modification time of the containing file; if it differs, so may the content
};

struct ImageUnit {
  std::vector<ImageItem> items;
  std::vector<std::string> classes;  // names of classes; empty: labels are numbers
  std::vector<std::string> damaged;  // one line per image left out
  std::vector<PassedOver> passed{};  // files that are not images
};

// Serialise a unit for other ranks; `unit` is the index that its items get.
void put(Packing& packing, const ImageUnit& unit);
ImageUnit get_unit(Unpacking& packed, std::int32_t unit);

class ImageInput {
 public:
  virtual ~ImageInput() = default;
  virtual const std::vector<std::string>& units() const = 0;  // class folders or archives, named for people
  // Lists the content of a unit in a fixed order. An unusable image is a DataError with its place or, if damage is
  // skipped, a line of `damaged`.
  virtual ImageUnit list(std::size_t unit) = 0;
  virtual std::vector<PassedOver> passed_over() const { return {}; }  // files outside of all units
  // Whether read() takes about the same time in any order, so that samples can be shuffled before they are written.
  virtual bool reads_anywhere() const = 0;
  virtual std::string read(const ImageItem& item) = 0;  // returns its bytes; DataError
  virtual std::string place(const ImageItem& item) const = 0;
};

struct ImageRequest {
  std::string format{};               // images | tar
  std::vector<std::string> inputs{};  // images: one folder of <class>/<file>.jpg, .jpeg, .png; tar: archives
  int height = 0, width = 0;          // size of samples; 0: that of the first image, which all others must share
  int channels = 3;                   // 1 or 3
  bool encoded = false;               // store the bytes of the files, whatever their sizes
  bool skip_damaged = false;          // leave out unusable images
  bool labels_as_they_are = false;    // accept labels and names that do not look like classes
  std::string like{};                 // a set whose classes, mean and std are reused; "": none
};

// Throws ConfigError for inputs that do not fit the format, DataError if they cannot be read.
std::unique_ptr<ImageInput> open_images(const ImageRequest& request);
std::unique_ptr<ImageInput> open_image_folder(const ImageRequest& request);
std::unique_ptr<ImageInput> open_image_archives(const ImageRequest& request);

// Whether a file name ends in .jpg, .jpeg or .png, in any case, and does not begin with a dot.
bool is_image_name(const std::string& name);
// Returns the kind under which a file that is not an image by its name is counted. Names images of other formats.
std::string other_file(const std::string& name);

}  // namespace echelon::inline data
