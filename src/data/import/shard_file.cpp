// SPDX-License-Identifier: Apache-2.0
#include "data/import/shard_file.hpp"

#include <algorithm>

#include "data/format.hpp"
#include "data/shard_header.hpp"

namespace echelon::inline data {

namespace format = sample_format;

void write_shard_header(h5::Writer& writer, const SourceInfo& info, const ShardHeader& header) {
  writer.attribute(format::kFormat, std::string(format::kName));
  writer.attribute(format::kFormatVersion, format::kVersion);
  if (info.targets == 0) writer.attribute(format::kClasses, header.classes);
  if (!info.class_names.empty()) write_class_names(writer, info.class_names);
  writer.attribute(format::kMean, header.mean);
  writer.attribute(format::kStd, header.std);
  writer.attribute(format::kScale, info.scale);
  writer.attribute(format::kValueRange, header.value_range);
}

namespace {

// Uses fewer rows for large samples, because a chunk is held in memory to be written and to be read; one where each
// record is read alone.
std::int64_t rows_of_chunk(std::int64_t asked, std::int64_t samples, std::size_t sample_bytes) {
  constexpr std::size_t kMostBytes = 16 << 20;
  if (sample_bytes >= kAloneBytes) return 1;
  const auto fitting = static_cast<std::int64_t>(kMostBytes / std::max<std::size_t>(sample_bytes, 1));
  return std::max<std::int64_t>(1, std::min({asked, samples, fitting}));
}

}  // namespace

std::size_t sample_bytes(const SourceInfo& info) {
  return static_cast<std::size_t>(info.sample.elems()) * size_of(info.stored);
}
std::size_t label_bytes(const SourceInfo& info) {
  return 4 * static_cast<std::size_t>(std::max({std::int64_t{1}, info.targets, info.label.elems()}));
}

ShardFile::ShardFile(const std::string& path, std::int64_t samples, const SourceInfo& info, const ShardHeader& header,
                     const ShardOptions& options)
    : writer_(path),
      stored_(info.stored),
      label_(info.targets > 0 ? DType::f32 : DType::i32),
      chunk_(rows_of_chunk(options.chunk, samples, sample_bytes(info))),
      sample_bytes_(sample_bytes(info)),
      label_bytes_(label_bytes(info)),
      samples_(static_cast<std::size_t>(chunk_) * sample_bytes_),
      labels_(static_cast<std::size_t>(chunk_) * label_bytes_) {
  write_shard_header(writer_, info, header);
  h5::DatasetOptions storage{.chunk_rows = chunk_, .deflate = options.compress, .checksum = options.checksums};
  if (options.slab_rows > 0 && info.sample.rank() >= 3) storage.slab_axis = 2, storage.slab_rows = options.slab_rows;
  writer_.create(format::kSamples, info.stored, info.sample.prepended(samples), storage);
  storage.slab_axis = 0;
  Shape labels = info.label.prepended(samples);
  if (info.targets > 0 && labels.rank() == 1) labels = {samples, info.targets};
  const DType classes = header.classes <= 256 && !info.any_label ? DType::u8 : DType::i32;
  writer_.create(format::kLabels, info.targets > 0 ? DType::f32 : classes, labels, storage);
}

void ShardFile::append(const std::uint8_t* sample, const std::uint8_t* label) {
  const auto at = static_cast<std::size_t>(held_);
  std::copy(sample, sample + sample_bytes_, samples_.data() + at * sample_bytes_);
  std::copy(label, label + label_bytes_, labels_.data() + at * label_bytes_);
  if (++held_ == chunk_) flush();
}

void ShardFile::flush() {
  if (held_ == 0) return;
  writer_.write_rows(format::kSamples, written_, held_, samples_.data(), stored_);
  writer_.write_rows(format::kLabels, written_, held_, labels_.data(), label_);
  written_ += held_;
  held_ = 0;
}

void ShardFile::publish() {
  flush();
  writer_.publish();
}

}  // namespace echelon::inline data
