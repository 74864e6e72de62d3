// SPDX-License-Identifier: Apache-2.0
#include "data/sample_file.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "data/encoded.hpp"
#include "data/format.hpp"

namespace echelon::inline data {

namespace format = sample_format;

namespace {

// Files of one sample each are not opened with the set; the others may have been changed since.
void require_alike(const ForeignFile& file, const Dataset& dataset, const Shard& shard) {
  Shape expected = dataset.sample_shape;
  if (dataset.starts) expected = expected.with_front(dataset.stored_steps);
  const auto differ = [&](const std::string& here, const std::string& there) {
    throw DataError(fmt::format("{}: has samples of {}, but the set has {} since {} was read", shard.path, here, there,
                                dataset.shards.front().path));
  };
  if (file.is_encoded() ? file.sample_shape()[0] != expected[0] : file.sample_shape() != expected)
    differ(file.sample_shape().text(), expected.text());
  if (file.stored() != dataset.stored)
    differ(std::string(name_of(file.stored())), std::string(name_of(dataset.stored)));
}

}  // namespace

SampleFile::SampleFile(const Dataset& dataset, const Shard& shard) : keys_(dataset.hdf5), slab_(dataset.slab) {
  const std::string& path = shard.copy.empty() ? shard.path : shard.copy;
  if (keys_) {
    foreign_ = std::make_unique<Foreign>(path, shard.path, *keys_, dataset.labelled ? Labels::needed : Labels::optional,
                                         slab_);
    require_alike(foreign_->samples, dataset, shard);
  } else {
    shard_ = std::make_unique<h5::Reader>(path);
    if (dataset.encoded) starts_ = encoded_starts(*shard_);
  }
}

std::int64_t SampleFile::samples() const {
  if (foreign_) return foreign_->samples.rows().count;
  if (!starts_.empty()) return std::ssize(starts_) - 1;
  const Shape shape = shard_->info(format::kSamples).shape;
  return shape.rank() == 0 ? 0 : shape[0];
}

void SampleFile::read_shard(const char* name, std::int64_t first, std::int64_t count, const SlabRange& part, void* dst,
                            DType dtype) const {
  read_records(*shard_, name, false, {first, count}, dst, dtype, part.behind(1));
}

bool SampleFile::read_samples(std::int64_t first, std::int64_t count, void* dst, DType stored) const {
  if (foreign_) return foreign_->samples.read(first, count, dst);
  read_shard(format::kSamples, first, count, slab_.samples, dst, stored);
  return stored == DType::u8;
}

void SampleFile::read_encoded(std::int64_t first, std::int64_t count, std::vector<std::uint8_t>& bytes,
                              std::vector<std::size_t>& ends) const {
  if (foreign_) return foreign_->samples.read_encoded(first, count, bytes, ends);
  const std::int64_t* starts = starts_.data() + first;
  bytes.resize(static_cast<std::size_t>(starts[count] - starts[0]));
  shard_->read_rows(format::kBytes, starts[0], starts[count] - starts[0], bytes.data(), DType::u8);
  ends.clear();
  for (std::int64_t i = 1; i <= count; ++i) ends.push_back(static_cast<std::size_t>(starts[i] - starts[0]));
}

void SampleFile::read_classes(std::int64_t first, std::int64_t count, std::int32_t* dst) const {
  foreign_ ? foreign_->labels.read_classes(first, count, dst)
           : read_shard(format::kLabels, first, count, slab_.labels, dst, DType::i32);
}

void SampleFile::read_numbers(std::int64_t first, std::int64_t count, float* dst) const {
  foreign_ ? foreign_->labels.read_numbers(first, count, dst)
           : read_shard(format::kLabels, first, count, slab_.labels, dst, DType::f32);
}

void SampleFile::read_weights(std::int64_t first, std::int64_t count, float* dst) const {
  foreign_->labels.read_weights(first, count, dst);
}

std::uint64_t SampleFile::bytes_read() const {
  return reader().bytes_read() + (foreign_ ? foreign_->labels.bytes_read() : 0);
}

}  // namespace echelon::inline data
