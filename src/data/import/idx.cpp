// SPDX-License-Identifier: Apache-2.0
// IDX, the format of MNIST and similar sets: a magic number whose third byte is the type and fourth the number of axes,
// the extents as big-endian 32-bit integers, then the values. There are two files: images and labels.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "data/import/byte_stream.hpp"
#include "data/import/source.hpp"

namespace echelon::inline data {
namespace {

constexpr std::uint32_t kUnsignedBytes = 0x08;

class Idx : public SampleSource {
 public:
  Idx(const std::string& images, const std::string& labels, double value_max) : images_(images), labels_(labels) {
    info_.scale = 1 / value_max;
    read_headers();
  }

  const SourceInfo& info() const override { return info_; }

  void rewind() override {
    images_.rewind();
    labels_.rewind();
    read_headers();
  }

  std::int64_t read(std::int64_t most, std::uint8_t* samples, void* classes) override {
    auto* labels = static_cast<std::int32_t*>(classes);
    const std::int64_t count = std::min(most, samples_ - next_);
    const auto image_bytes = static_cast<std::size_t>(info_.sample.elems());
    std::vector<std::uint8_t> narrow(static_cast<std::size_t>(count));
    images_.read(samples, narrow.size() * image_bytes, fmt::format("images {} to {}", next_, next_ + count - 1));
    labels_.read(narrow.data(), narrow.size(), fmt::format("labels {} to {}", next_, next_ + count - 1));
    std::copy(narrow.begin(), narrow.end(), labels);
    next_ += count;
    if (count == 0) {
      expect_end(images_);
      expect_end(labels_);
    }
    return count;
  }

 private:
  // Reads the extents after the magic number. `least`, `most`: allowed numbers of axes.
  static std::vector<std::int64_t> header(ByteStream& stream, std::uint32_t least, std::uint32_t most) {
    const std::uint32_t magic = stream.read_be32("its magic number");
    const std::uint32_t type = magic >> 8, axes = magic & 0xff;
    const bool expects_labels = most == 1;
    if (type == kUnsignedBytes && axes == (expects_labels ? 3U : 1U))
      throw DataError(fmt::format("{}: holds {}; give the images first, then the labels", stream.path(),
                                  expects_labels ? "images, expected labels" : "labels, expected images"));
    if (type != kUnsignedBytes || axes < least || axes > most)
      throw DataError(fmt::format("{}: begins with {:#010x}, expected {} for {} of unsigned bytes in IDX",
                                  stream.path(), magic, expects_labels ? "0x00000801" : "0x00000803 or 0x00000804",
                                  expects_labels ? "labels" : "images"));
    std::vector<std::int64_t> extents;
    for (std::uint32_t axis = 0; axis < axes; ++axis) extents.push_back(stream.read_be32("its header"));
    return extents;
  }

  static void expect_end(ByteStream& stream) {
    std::uint8_t byte = 0;
    const std::int64_t at = stream.offset();
    if (stream.read_some(&byte, 1) > 0)
      throw DataError(
          fmt::format("{}: has more bytes after byte {}, where it ends according to its header", stream.path(), at));
  }

  void read_headers() {
    const std::vector<std::int64_t> extents = header(images_, 3, 4);
    const std::int64_t labels = header(labels_, 1, 1)[0];
    samples_ = extents[0];
    if (samples_ != labels)
      throw DataError(
          fmt::format("{}: holds {} images, but {} holds {} labels", images_.path(), samples_, labels_.path(), labels));
    double elems = 1;  // elements of one image; a double cannot overflow
    for (std::size_t axis = 1; axis < extents.size(); ++axis) elems *= static_cast<double>(extents[axis]);
    if (samples_ == 0 || elems == 0 || elems > 1 << 26)
      throw DataError(fmt::format("{}: its header claims extents of {}", images_.path(), fmt::join(extents, " x ")));
    const Shape all{std::span<const std::int64_t>(extents)};
    info_.sample = extents.size() == 3 ? all.without_front().prepended(1) : all.without_front();
    next_ = 0;
  }

  ByteStream images_, labels_;
  SourceInfo info_;
  std::int64_t samples_ = 0, next_ = 0;
};

}  // namespace

std::unique_ptr<SampleSource> open_idx(const ImportRequest& request) {
  if (request.inputs.size() != 2)
    throw ConfigError(fmt::format("idx takes 2 files, images and labels; {} given", request.inputs.size()));
  return std::make_unique<Idx>(request.inputs[0], request.inputs[1], request.value_max);
}

}  // namespace echelon::inline data
