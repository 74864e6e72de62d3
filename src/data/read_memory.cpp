// SPDX-License-Identifier: Apache-2.0
#include "data/read_memory.hpp"

#include <algorithm>

#include "data/format.hpp"
#include "h5/decode_memory.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {
namespace {

constexpr std::size_t kMostFiles = 64;  // inspects at most this many files, evenly spread

double decoding_of(const Dataset& dataset) {
  if (dataset.encoded && dataset.hdf5) return 0;  // bytes are read as they are
  const std::string rows = dataset.hdf5                        ? dataset.hdf5->samples.front()
                           : dataset.encoded                   ? sample_format::kBytes
                           : dataset.kind == DataKind::samples ? sample_format::kSamples
                           : dataset.vocabulary.size() > 0     ? sample_format::kTokens
                                                               : sample_format::kValues;
  const std::size_t files = std::min(dataset.shards.size(), kMostFiles);
  double most = 0;
  for (std::size_t i = 0; i < files; ++i)
    most = std::max(most, h5::decode_bytes(dataset.shards[i * dataset.shards.size() / files].path, rows));
  return most;
}

}  // namespace

ReadMemory read_memory(const Dataset& dataset, std::int64_t buffer_bytes, std::int64_t n, std::int64_t prefetch,
                       DType dtype) {
  std::int64_t longest = 1;
  for (const Shard& shard : dataset.shards) longest = std::max(longest, shard.rows_together());
  const auto record = static_cast<double>(dataset.record_bytes());
  const double chunk = static_cast<double>(longest) * record;
  const double all = static_cast<double>(dataset.samples()) * record, buffer = static_cast<double>(buffer_bytes);
  const bool passing = longest == 1 && !dataset.mixes && all > buffer;  // one record is held after the other
  const auto element = static_cast<double>(dataset.vocabulary.size() > 0 ? 4 : size_of(dtype));
  return {.records = passing ? chunk : std::min(all, std::max(chunk, buffer)),
          .decoding = decoding_of(dataset) + (dataset.hdf5 ? chunk : 0),  // with its axes as they are stored
          .batches = static_cast<double>((prefetch + 1) * n * dataset.seen_shape().elems()) * element,
          .at_once = dataset.samples() <= longest};
}

}  // namespace echelon::inline data
