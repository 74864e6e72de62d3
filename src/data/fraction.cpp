// SPDX-License-Identifier: Apache-2.0
// data.fraction: selects the samples in a part of the data (sample_plan.hpp).
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash_rng.hpp"
#include "data/dataset.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline data {

std::int64_t kept_of(std::int64_t samples, double fraction) {
  return std::clamp<std::int64_t>(std::llround(fraction * static_cast<double>(samples)), 1, samples);
}

namespace {

// A stream keeps the beginning of a text, or the first series.
std::int64_t kept_of_stream(std::int64_t samples, const Starts& series, double fraction) {
  return series ? (*series)[static_cast<std::size_t>(kept_of(std::ssize(*series) - 1, fraction))]
                : kept_of(samples, fraction);
}

}  // namespace

std::int64_t samples_used(const Dataset& dataset, const DataConfig& config) {
  if (config.order == Order::stream) return kept_of_stream(dataset.samples(), dataset.series, config.fraction);
  std::int64_t samples = 0;
  for (const Shard& shard : dataset.shards) samples += kept_of(shard.samples, config.fraction);
  return samples;
}

void SamplePlan::keep_fraction() {
  std::vector<std::int64_t>& files = request_.file_samples;
  if (request_.stream) {
    std::int64_t left = kept_of_stream(ids_end_, request_.series, request_.fraction);
    for (std::int64_t& samples : files) left -= samples = std::min(samples, left);
    return;
  }
  const HashRng rng(request_.seed, "fraction");
  std::vector<std::int64_t> kept;
  std::int64_t first = 0;  // id of the file's first sample
  for (std::size_t file = 0; file < files.size(); ++file) {
    const HashRng of_file = rng.at(file);
    std::vector<std::pair<std::uint64_t, std::int64_t>> drawn;
    for (std::int64_t i = 0; i < files[file]; ++i)
      drawn.emplace_back(of_file.bits(static_cast<std::uint64_t>(i)), first + i);
    data_first_.push_back(first);
    first += files[file];
    files[file] = kept_of(files[file], request_.fraction);
    std::nth_element(drawn.begin(), drawn.begin() + files[file] - 1, drawn.end());
    drawn.resize(static_cast<std::size_t>(files[file]));
    for (const auto& [key, id] : drawn) kept.push_back(id);
  }
  std::sort(kept.begin(), kept.end());
  if (request_.lengths) {
    std::vector<std::int32_t> lengths;
    for (const std::int64_t id : kept) lengths.push_back((*request_.lengths)[static_cast<std::size_t>(id)]);
    request_.lengths = std::make_shared<const std::vector<std::int32_t>>(std::move(lengths));
  }
  kept_ = std::make_shared<const std::vector<std::int64_t>>(std::move(kept));
}

}  // namespace echelon::inline data
