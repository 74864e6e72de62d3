// A folder with one folder for each class and its images anywhere below that.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "data/import/image_input.hpp"

namespace echelon::inline data {
namespace {

namespace fs = std::filesystem;

class ImageFolder final : public ImageInput {
 public:
  explicit ImageFolder(const std::string& folder) : folder_(folder) {
    bool images = false;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      std::error_code unreadable;
      if (!entry->is_directory(unreadable))
        images |= is_image_name(name);
      else if (name[0] != '.')
        classes_.push_back(name);
    }
    if (error) throw DataError(fmt::format("{}: the folder cannot be read: {}", folder, error.message()));
    if (classes_.empty())
      throw DataError(fmt::format("{}: holds no folder; images are wanted as {}/<class>/<name>.jpg, .jpeg or .png{}",
                                  folder, folder, images ? ", here they are not sorted into classes" : ""));
    std::sort(classes_.begin(), classes_.end());
  }

  const std::vector<std::string>& units() const override { return classes_; }
  bool reads_anywhere() const override { return true; }

  ImageUnit list(std::size_t unit) override {
    const fs::path root = fs::path(folder_) / classes_[unit];
    ImageUnit found{.items = {}, .classes = {classes_[unit]}, .damaged = {}};
    std::error_code error;
    for (fs::recursive_directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().lexically_relative(root).string();
      std::error_code unreadable;
      if (!is_image_name(name) || entry->is_directory(unreadable)) continue;
      const FileStamp file = stamp_of(entry->path().string());
      found.items.push_back({.unit = static_cast<std::int32_t>(unit),
                             .label = 0,
                             .name = name,
                             .offset = 0,
                             .bytes = file.bytes,
                             .stamp = file.stamp});
    }
    if (error) throw DataError(fmt::format("{}: the folder cannot be read: {}", root.string(), error.message()));
    if (found.items.empty()) throw DataError(fmt::format("{}: holds no .jpg, .jpeg or .png file", root.string()));
    std::sort(found.items.begin(), found.items.end(),
              [](const ImageItem& a, const ImageItem& b) { return a.name < b.name; });
    return found;
  }

  std::string read(const ImageItem& item) override {
    try {
      return read_file_whole(place(item));
    } catch (const EnvironmentError& error) {
      throw DataError(error.what());
    }
  }

  std::string place(const ImageItem& item) const override {
    return (fs::path(folder_) / classes_[static_cast<std::size_t>(item.unit)] / item.name).string();
  }

 private:
  std::string folder_;
  std::vector<std::string> classes_;
};

}  // namespace

std::unique_ptr<ImageInput> open_image_folder(const ImageRequest& request) {
  if (request.inputs.size() != 1)
    throw ConfigError(
        fmt::format("images takes one folder with a folder for each class; {} given", request.inputs.size()));
  return std::make_unique<ImageFolder>(request.inputs[0]);
}

}  // namespace echelon::inline data
