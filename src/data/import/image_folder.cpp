// SPDX-License-Identifier: Apache-2.0
// A folder with one subfolder per class, and its images anywhere below that. Links are followed. Names that begin with
// a dot, and files that are not images by their names, are skipped and counted.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "data/import/file_stamp.hpp"
#include "data/import/image_input.hpp"

namespace echelon::inline data {
namespace {

namespace fs = std::filesystem;

// Returns the entries of a folder in the order of their names. Throws DataError if it cannot be read.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    entries.push_back(*entry);
  if (error) throw DataError(fmt::format("{}: the folder cannot be read: {}", folder.string(), error.message()));
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_hidden(const fs::directory_entry& entry) { return entry.path().filename().string().starts_with('.'); }

bool is_folder(const fs::directory_entry& entry) {
  std::error_code unreadable;
  return entry.is_directory(unreadable);
}

// The state while the folder of one class is listed.
class ClassListing {
 public:
  ClassListing(const fs::path& root, std::size_t unit, const std::string& name, bool skip_damaged)
      : root_(root), unit_(static_cast<std::int32_t>(unit)), skip_damaged_(skip_damaged) {
    found_.classes = {name};
  }

  ImageUnit run() {
    walk(root_);
    if (found_.items.empty() && found_.damaged.empty()) {
      const std::string other = passed_over_text(found_.passed);
      throw DataError(fmt::format("{}: holds no .jpg, .jpeg or .png file{}", root_.string(),
                                  other.empty() ? "" : ", but " + other));
    }
    std::sort(found_.items.begin(), found_.items.end(),
              [](const ImageItem& a, const ImageItem& b) { return a.name < b.name; });
    return std::move(found_);
  }

 private:
  void walk(const fs::path& folder) {
    std::error_code error;
    const fs::path here = fs::canonical(folder, error);
    if (error) throw DataError(fmt::format("{}: the folder cannot be read: {}", folder.string(), error.message()));
    if (!above_.insert(here).second)
      throw DataError(fmt::format("{}: is a link to a folder that holds it", folder.string()));
    for (const fs::directory_entry& entry : entries_of(folder)) add(entry);
    above_.erase(here);
  }

  void add(const fs::directory_entry& entry) {
    const std::string path = entry.path().string();
    if (is_hidden(entry)) return pass_over(found_.passed, is_folder(entry) ? "hidden folder" : "hidden file", path);
    if (is_folder(entry)) return walk(entry.path());
    if (!is_image_name(path)) return pass_over(found_.passed, other_file(path), path);
    try {
      const FileStamp file = stamp_of(path);
      if (!entry.is_regular_file() && !entry.is_fifo())  // a pipe is read like a file
        throw DataError(fmt::format("{}: is not a regular file", path));
      found_.items.push_back({.unit = unit_,
                              .label = 0,
                              .name = entry.path().lexically_relative(root_).string(),
                              .offset = 0,
                              .bytes = file.bytes,
                              .stamp = file.stamp});
    } catch (const DataError& wrong) {
      if (!skip_damaged_) throw;
      found_.damaged.emplace_back(wrong.what());
    }
  }

  const fs::path root_;
  const std::int32_t unit_;
  const bool skip_damaged_;
  ImageUnit found_;
  std::set<fs::path> above_;  // the folders above the current one
};

class ImageFolder final : public ImageInput {
 public:
  explicit ImageFolder(const ImageRequest& request) : folder_(request.inputs[0]), skip_damaged_(request.skip_damaged) {
    std::int64_t images = 0;
    for (const fs::directory_entry& entry : entries_of(folder_)) {
      const std::string name = entry.path().filename().string();
      const bool image = is_image_name(name), folder = is_folder(entry);
      if (folder && !is_hidden(entry)) {
        classes_.push_back(name);
        continue;
      }
      images += image ? 1 : 0;
      pass_over(passed_,
                folder  ? "hidden folder"
                : image ? "image beside the folders of classes"
                        : other_file(name),
                entry.path().string());
    }
    if (classes_.empty())
      throw DataError(fmt::format("{}: holds no folder; images must be {}/<class>/<name>.jpg, .jpeg or .png{}", folder_,
                                  folder_, images > 0 ? ", but here they are not sorted into classes" : ""));
    if (!request.labels_as_they_are) refuse_one_level_too_high();
  }

  const std::vector<std::string>& units() const override { return classes_; }
  std::vector<PassedOver> passed_over() const override { return passed_; }
  bool reads_anywhere() const override { return true; }
  ImageUnit list(std::size_t unit) override {
    return ClassListing(fs::path(folder_) / classes_[unit], unit, classes_[unit], skip_damaged_).run();
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
  // If a single folder holds two or more folders and no image, the classes are in there.
  void refuse_one_level_too_high() const {
    if (classes_.size() > 1) return;
    const fs::path only = fs::path(folder_) / classes_[0];
    std::int64_t folders = 0;
    for (const fs::directory_entry& entry : entries_of(only)) {
      if (is_image_name(entry.path().filename().string()) && !is_folder(entry)) return;
      folders += is_folder(entry) && !is_hidden(entry) ? 1 : 0;
    }
    if (folders > 1)
      throw DataError(
          fmt::format("{}: '{}' would be the only class, and holds {} and no image; did you mean {}? "
                      "--labels-as-they-are imports it as one class",
                      folder_, classes_[0], counted(folders, "folder"), only.string()));
  }

  std::string folder_;
  bool skip_damaged_;
  std::vector<std::string> classes_;
  std::vector<PassedOver> passed_;
};

}  // namespace

std::unique_ptr<ImageInput> open_image_folder(const ImageRequest& request) {
  if (request.inputs.size() != 1)
    throw ConfigError(
        fmt::format("images takes one folder with a folder for each class; {} given", request.inputs.size()));
  return std::make_unique<ImageFolder>(request);
}

}  // namespace echelon::inline data
