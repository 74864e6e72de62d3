// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100 in their binary versions: records of label bytes (one, or coarse and fine) followed by 3072
// pixels in the order C H W (https://www.cs.toronto.edu/~kriz/cifar.html).
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "data/import/byte_stream.hpp"
#include "data/import/source.hpp"

namespace echelon::inline data {
namespace {

constexpr std::size_t kPixels = 3 * 32 * 32;

struct Variant {
  std::size_t label_bytes;  // the last of them is the label
  std::int64_t classes;
  const char* names_file;  // a file that comes with the data
};

class Cifar : public SampleSource {
 public:
  Cifar(const ImportRequest& request, const Variant& variant) : variant_(variant), paths_(request.inputs) {
    if (paths_.empty()) throw ConfigError(fmt::format("{} takes one or more batch files", request.format));
    info_.sample = {3, 32, 32};
    info_.scale = 1 / request.value_max;
    info_.classes = variant.classes;
    info_.class_names = names_beside(paths_[0]);
    for (const std::string& path : paths_) ByteStream{path};  // checks that all exist before the first is read
  }

  const SourceInfo& info() const override { return info_; }

  void rewind() override {
    stream_.reset();
    file_ = 0;
  }

  std::int64_t read(std::int64_t most, std::uint8_t* samples, void* classes) override {
    auto* labels = static_cast<std::int32_t*>(classes);
    std::int64_t count = 0;
    while (count < most && file_ < paths_.size()) {
      if (!stream_) stream_ = std::make_unique<ByteStream>(paths_[file_]);
      if (read_record(samples + static_cast<std::size_t>(count) * kPixels, labels[count])) {
        ++count;
        continue;
      }
      if (stream_->offset() == 0) throw DataError(fmt::format("{}: is empty", stream_->path()));
      stream_.reset();
      ++file_;
    }
    return count;
  }

 private:
  bool read_record(std::uint8_t* pixels, std::int32_t& label) {
    const std::int64_t at = stream_->offset();
    std::uint8_t bytes[2] = {};
    if (stream_->read_some(bytes, 1) == 0) return false;
    if (variant_.label_bytes == 2) stream_->read(bytes + 1, 1, fmt::format("the record that begins at byte {}", at));
    label = bytes[variant_.label_bytes - 1];
    if (label >= variant_.classes)
      throw DataError(fmt::format("{}: the record at byte {} has label {}, must be 0 to {}; is this a CIFAR-{} file?",
                                  stream_->path(), at, label, variant_.classes - 1, variant_.classes));
    stream_->read(pixels, kPixels, fmt::format("the record that begins at byte {}", at));
    return true;
  }

  // Reads one name per line from the file that comes with the data; none if it is not in the same folder.
  std::vector<std::string> names_beside(const std::string& path) const {
    std::ifstream file(std::filesystem::path(path).parent_path() / variant_.names_file);
    std::vector<std::string> names;
    for (std::string line; std::getline(file, line);)
      if (!line.empty()) names.push_back(line);
    return names.size() == static_cast<std::size_t>(variant_.classes) ? names : std::vector<std::string>{};
  }

  Variant variant_;
  std::vector<std::string> paths_;
  SourceInfo info_;
  std::size_t file_ = 0;
  std::unique_ptr<ByteStream> stream_;
};

}  // namespace

std::unique_ptr<SampleSource> open_cifar10(const ImportRequest& request) {
  return std::make_unique<Cifar>(request, Variant{1, 10, "batches.meta.txt"});
}

std::unique_ptr<SampleSource> open_cifar100(const ImportRequest& request) {
  return std::make_unique<Cifar>(request, Variant{2, 100, "fine_label_names.txt"});
}

}  // namespace echelon::inline data
