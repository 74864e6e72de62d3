// SPDX-License-Identifier: Apache-2.0
// Archives in the style of WebDataset (https://github.com/webdataset/webdataset). Consecutive members that share a
// name up to the first dot are one sample: <key>.jpg, .jpeg or .png with <key>.cls, a class number, or <key>.txt, a
// class name. Other members are skipped and counted.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/lower_case.hpp"
#include "data/import/archive.hpp"
#include "data/import/file_stamp.hpp"
#include "data/import/image_input.hpp"
#include "data/import/numbers.hpp"

namespace echelon::inline data {
namespace {

constexpr std::int64_t kMostLabel = 4096;  // bytes
constexpr unsigned kReadAround = 1 << 14;  // bytes read for an image, if it is not larger

// "a/b" and "seg.png" for "a/b.seg.PNG"; empty for names without a dot, or with a dot in front.
struct NameParts {
  std::string key, ending;
};
NameParts parts_of(const std::string& name) {
  const std::size_t base = name.rfind('/') + 1, dot = name.find('.', base);  // npos + 1 is 0
  if (dot == std::string::npos || dot == base) return {};
  return {name.substr(0, dot), lower_case(name.substr(dot + 1))};
}

std::string_view first_line(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return trimmed(text);
}

// The state while one archive is listed.
class Listing {
 public:
  Listing(const std::string& path, std::int32_t unit, bool skip_damaged)
      : path_(path), unit_(unit), skip_damaged_(skip_damaged), stamp_(stamp_of(path).stamp) {}

  ImageUnit run() {
    ArchiveReader archive(path_);
    try {
      for (ArchiveMember member; archive.next(member);) add(archive, member);
      finish();
    } catch (const DataError& error) {  // the rest of the archive cannot be read
      if (!skip_damaged_) throw;
      if (archive.last_is_whole() && trouble_of(open_).empty()) keep(open_);
      found_.damaged.emplace_back(error.what());
    }
    if (found_.items.empty() && !skip_damaged_) throw DataError(fmt::format("{}: holds no image with a label", path_));
    return std::move(found_);
  }

 private:
  struct Sample {
    std::string key{};
    std::int64_t begin = 0;
    std::optional<ArchiveMember> image{};
    std::optional<std::int32_t> number{};
    std::optional<std::string> text{};
    std::string trouble{};
  };

  // Only the first problem of a sample counts.
  void note(std::int64_t at, const std::string& what) {
    if (open_.trouble.empty()) open_.trouble = fmt::format("{}: byte {}: {}", path_, at, what);
  }

  void add(ArchiveReader& archive, const ArchiveMember& member) {
    const NameParts name = parts_of(member.name);
    const bool image = name.ending.find('.') == std::string::npos && is_image_name("x." + name.ending);
    if (!image && name.ending != "cls" && name.ending != "txt") {
      if (!member.name.ends_with('/'))
        pass_over(found_.passed, member.is_file ? other_file(member.name) : "link", path_ + ": " + member.name);
      return;
    }
    if (name.key != open_.key) {
      finish();
      open_ = {.key = name.key, .begin = member.header};
    }
    if (!member.is_file) return note(member.header, fmt::format("'{}' is not a regular file", member.name));
    if (image) {
      if (open_.image)
        note(member.header, fmt::format("'{}' is a second image beside '{}'", member.name, open_.image->name));
      else
        open_.image = member;
      return;
    }
    if (member.bytes > kMostLabel && name.ending == "cls")
      return note(member.header, fmt::format("'{}' is not a class number: it has {} bytes", member.name, member.bytes));
    if (member.bytes > kMostLabel) return;  // a caption, not a class name
    const std::string content = archive.content();
    const std::string_view line = first_line(content);
    if (name.ending == "txt")
      open_.text = line;
    else
      open_.number = number_of(member, line);
  }

  std::optional<std::int32_t> number_of(const ArchiveMember& member, std::string_view text) {
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number >= 0 &&
        number < std::numeric_limits<std::int32_t>::max())
      return number;
    note(member.header, fmt::format("'{}' holds '{}', which is not a class number", member.name, text.substr(0, 40)));
    return std::nullopt;
  }

  void finish() {
    const Sample sample = std::exchange(open_, {});
    if (!sample.image && !sample.number && sample.trouble.empty()) {  // nothing, or only a text
      if (!sample.key.empty()) pass_over(found_.passed, ".txt file without an image", path_ + ": " + sample.key);
      return;
    }
    const std::string trouble = trouble_of(sample);
    if (trouble.empty()) return keep(sample);
    if (!skip_damaged_) throw DataError(trouble);
    found_.damaged.push_back(trouble);
  }

  // Returns why a sample cannot be used; "" if it can. The first usable sample decides which kind of label counts.
  std::string trouble_of(const Sample& sample) const {
    if (!sample.trouble.empty()) return sample.trouble;
    const auto at = [&](const std::string& what) { return fmt::format("{}: byte {}: {}", path_, sample.begin, what); };
    if (!sample.image) return at(fmt::format("'{0}.cls' has no image '{0}.jpg', .jpeg or .png beside it", sample.key));
    const bool named = sample.text && !sample.text->empty();
    if (numbers_ ? (*numbers_ ? sample.number.has_value() : named) : sample.number || named) return {};
    return at(fmt::format("'{}' has no label '{}.{}' beside it", sample.image->name, sample.key,
                          !numbers_   ? "cls' or '.txt"
                          : *numbers_ ? "cls"
                                      : "txt"));
  }

  void keep(const Sample& sample) {
    if (!numbers_) numbers_ = sample.number.has_value();
    std::int32_t label = 0;
    if (*numbers_) {
      label = *sample.number;
    } else {
      const auto [known, added] = labels_.emplace(*sample.text, static_cast<std::int32_t>(labels_.size()));
      if (added) found_.classes.push_back(*sample.text);
      label = known->second;
    }
    found_.items.push_back({.unit = unit_,
                            .label = label,
                            .name = sample.image->name,
                            .offset = sample.image->offset,
                            .bytes = sample.image->bytes,
                            .stamp = stamp_});
  }

  const std::string path_;
  const std::int32_t unit_;
  const bool skip_damaged_;
  const std::uint64_t stamp_;
  ImageUnit found_;
  Sample open_;
  std::optional<bool> numbers_;  // whether labels are numbers or names, once known
  std::map<std::string, std::int32_t> labels_;
};

class ImageArchives final : public ImageInput {
 public:
  explicit ImageArchives(const ImageRequest& request) : paths_(request.inputs), skip_damaged_(request.skip_damaged) {
    for (const std::string& path : paths_)  // checks that all exist before the first is read
      if (!ArchiveReader{path}.is_plain_tar()) plain_ = false;
  }

  const std::vector<std::string>& units() const override { return paths_; }
  bool reads_anywhere() const override { return plain_; }
  ImageUnit list(std::size_t unit) override {
    return Listing(paths_[unit], static_cast<std::int32_t>(unit), skip_damaged_).run();
  }

  std::string read(const ImageItem& item) override { return plain_ ? read_there(item) : read_onward(item); }

  std::string place(const ImageItem& item) const override {
    return fmt::format("{}: '{}' at byte {}", path_of(item), item.name, item.offset);
  }

 private:
  const std::string& path_of(const ImageItem& item) const { return paths_[static_cast<std::size_t>(item.unit)]; }

  std::string read_there(const ImageItem& item) {
    if (!stream_ || stream_->path() != path_of(item))
      stream_ = std::make_unique<ByteStream>(path_of(item), kReadAround);
    std::string bytes(static_cast<std::size_t>(item.bytes), '\0');
    stream_->seek(item.offset);
    stream_->read(bytes.data(), bytes.size(), fmt::format("'{}'", item.name));
    return bytes;
  }

  // Passes over the members before this one; an item that does not lie behind the last begins the archive again.
  std::string read_onward(const ImageItem& item) {
    if (!archive_ || archive_->path() != path_of(item) || member_.offset >= item.offset) {
      archive_ = std::make_unique<ArchiveReader>(path_of(item));
      member_ = {};
    }
    while (member_.offset < item.offset && archive_->next(member_)) {
    }
    if (member_.offset != item.offset) throw DataError(fmt::format("{}: was changed meanwhile", path_of(item)));
    return archive_->content();
  }

  std::vector<std::string> paths_;
  bool skip_damaged_, plain_ = true;  // plain_: all are tars that are not compressed
  std::unique_ptr<ByteStream> stream_;
  std::unique_ptr<ArchiveReader> archive_;
  ArchiveMember member_;  // the last of archive_
};

}  // namespace

std::unique_ptr<ImageInput> open_image_archives(const ImageRequest& request) {
  if (request.inputs.empty()) throw ConfigError("tar takes one or more archives");
  return std::make_unique<ImageArchives>(request);
}

}  // namespace echelon::inline data
