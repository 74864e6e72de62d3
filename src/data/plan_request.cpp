#include <algorithm>
#include <utility>

#include "data/dataset.hpp"
#include "data/shard_plan.hpp"

namespace echelon {

ShardPlanRequest plan_request(const Dataset& dataset, const DataConfig& config, std::vector<std::int64_t> batch,
                              std::uint64_t seed) {
  ShardPlanRequest request;
  std::int64_t longest = 1;
  for (const Shard& shard : dataset.shards) {
    request.file_samples.push_back(shard.samples);
    request.file_chunk_rows.push_back(shard.chunk_rows);
    longest = std::max(longest, shard.chunk_rows);
  }
  request.batch = std::move(batch);
  request.sharding = config.sharding;
  request.ragged = config.ragged;
  request.shuffle = config.shuffle;
  request.seed = seed;
  const double chunk_bytes = static_cast<double>(longest) * static_cast<double>(dataset.record_bytes());
  const double fitting = config.buffer_mb * (1 << 20) / chunk_bytes;
  request.window_chunks =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(fitting, 1e9)), 1, config.window_chunks);
  return request;
}

}  // namespace echelon
