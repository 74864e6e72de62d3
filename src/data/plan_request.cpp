// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "data/class_mix.hpp"
#include "data/dataset.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline data {
namespace {

using Lengths = std::vector<std::int32_t>;

template <class Of>
SamplePlanRequest::ById by_id(const Dataset& dataset, const Of& of) {
  auto all = std::make_shared<Lengths>();
  all->reserve(static_cast<std::size_t>(dataset.samples()));
  for (std::int64_t id = 0; id < dataset.samples(); ++id) all->push_back(static_cast<std::int32_t>(of(id)));
  return all;
}

// Returns the greatest lengths of `count` buckets with about equally many sequences.
std::vector<std::int64_t> even_buckets(Lengths lengths, std::int64_t count) {
  std::sort(lengths.begin(), lengths.end());
  std::vector<std::int64_t> buckets;
  for (std::int64_t b = 1; b <= count; ++b) {
    const auto end = static_cast<std::size_t>(static_cast<std::int64_t>(lengths.size()) * b / count);
    const std::int64_t most = lengths[std::max<std::size_t>(end, 1) - 1];
    if (buckets.empty() || most > buckets.back()) buckets.push_back(most);
  }
  return buckets;
}

// Keeps the given buckets below the longest sequence, and adds one for the longest.
std::vector<std::int64_t> given_buckets(const Lengths& lengths, const std::vector<std::int64_t>& given) {
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::int64_t> buckets;
  for (const std::int64_t most : given)
    if (most < longest) buckets.push_back(most);
  buckets.push_back(longest);
  return buckets;
}

void put_into_buckets(SamplePlanRequest& request, const Dataset& dataset, const std::vector<std::int64_t>& given) {
  if (!dataset.starts)
    throw ConfigError(fmt::format("data.buckets is for sequences of different lengths; {} holds {}",
                                  dataset.shards[0].path, name_of(dataset.kind)));
  request.lengths = by_id(dataset, [&](std::int64_t id) {
    return std::max(dataset.length_of(id), dataset.target_starts ? dataset.target_length_of(id) : 0);
  });
  request.buckets =
      given.size() == 1 ? even_buckets(*request.lengths, given[0]) : given_buckets(*request.lengths, given);
}

}  // namespace

SamplePlanRequest plan_request(const Dataset& dataset, const DataConfig& config, std::vector<std::int64_t> batch,
                               std::uint64_t seed) {
  SamplePlanRequest request;
  std::int64_t longest = 1;
  for (const Shard& shard : dataset.shards) {
    request.file_samples.push_back(shard.samples);
    request.file_chunk_rows.push_back(shard.chunk_rows);
    longest = std::max(longest, shard.chunk_rows);
  }
  request.batch = std::move(batch);
  request.queue = config.balance == Balance::queue;
  request.sharding = config.balance == Balance::fixed ? config.sharding : Sharding::record;
  request.ragged = config.ragged;
  request.shuffle = config.shuffle;
  request.seed = seed;
  const double chunk_bytes = static_cast<double>(longest) * static_cast<double>(dataset.record_bytes());
  const double fitting = config.buffer_mb * (1 << 20) / chunk_bytes;
  request.label_sample = dataset.label_sample;
  const double sorted = dataset.label_sample ? dataset.label_sample->chunk_mix() : 0;
  request.window_chunks = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(fitting, 1e9)), 1,
                                                   window_for(sorted, longest, config.window_chunks));
  request.fraction = config.fraction;
  request.stream = config.order == Order::stream;
  if (!config.buckets.empty()) put_into_buckets(request, dataset, config.buckets);
  request.series = request.stream ? dataset.series : nullptr;
  request.weight = dataset.kind == DataKind::text ? dataset.length() : dataset.label_shape.elems();
  if (dataset.kind == DataKind::pairs || dataset.step_labels)
    request.weights = by_id(dataset, [&](std::int64_t id) { return dataset.labels_of(id); });
  return request;
}

}  // namespace echelon::inline data
