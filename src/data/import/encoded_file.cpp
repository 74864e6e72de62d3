// SPDX-License-Identifier: Apache-2.0
#include "data/import/encoded_file.hpp"

#include <algorithm>

#include "data/format.hpp"

namespace echelon::inline data {

namespace format = sample_format;

void add_moments_of(const Image& image, SourceInfo info, Statistics& statistics) {
  info.sample = {image.channels, image.height, image.width};
  std::vector<std::uint8_t> planes(sample_bytes(info));
  fit_image(image, image.height, image.width, planes.data());
  Statistics of_one(info);
  of_one.add(planes.data(), 1);
  statistics.add(of_one.moments());
}

EncodedFile::EncodedFile(const std::string& path, std::int64_t bytes, const SourceInfo& info, const ShardHeader& header,
                         const ShardOptions& options)
    : writer_(path),
      rows_{.chunk_rows = 0, .deflate = options.compress, .checksum = options.checksums},
      classes_(header.classes) {
  constexpr std::int64_t kChunkBytes = 256 << 10;
  write_shard_header(writer_, info, header);
  writer_.attribute(format::kEncoded, std::string(info.sample[0] == 1 ? "grey" : "rgb"));
  writer_.create(format::kBytes, DType::u8, Shape{bytes},
                 {.chunk_rows = std::min(kChunkBytes, bytes), .checksum = options.checksums});  // JPEG is compressed
}

void EncodedFile::append(std::string_view image, std::int32_t label) {
  writer_.write_rows(format::kBytes, written_, std::ssize(image), image.data(), DType::u8);
  written_ += std::ssize(image);
  lengths_.push_back(static_cast<std::int32_t>(image.size()));
  labels_.push_back(label);
}

void EncodedFile::publish() {
  const Shape rows{std::ssize(lengths_)};
  rows_.chunk_rows = std::min<std::int64_t>(rows[0], 1024);
  writer_.write_all(format::kLengths, DType::i32, rows, lengths_.data(), rows_);
  writer_.create(format::kLabels, classes_ <= 256 ? DType::u8 : DType::i32, rows, rows_);
  writer_.write_rows(format::kLabels, 0, rows[0], labels_.data(), DType::i32);
  writer_.publish();
}

}  // namespace echelon::inline data
