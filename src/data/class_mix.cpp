// SPDX-License-Identifier: Apache-2.0
#include "data/class_mix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.hpp"
#include "data/chunk.hpp"
#include "data/sample_file.hpp"
#include "data/step_labels.hpp"

namespace echelon::inline data {
namespace {

constexpr std::int64_t kMostClasses = 1 << 16;  // with more classes, each has too few samples
constexpr double kDeviations = 4, kLeast = 0.02;

using LabelChunk = LabelSample::Chunk;

// The intraclass correlation of labels in groups. `groups`: group of each chunk; -1: in none.
double correlation(const LabelSample& sample, const std::vector<int>& groups) {
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return groups[a] < groups[b]; });
  const auto classes = static_cast<std::size_t>(sample.classes());
  std::vector<double> all(classes, 0), own(classes, 0);
  double n = 0, within = 0, count = 0, number = 0;  // within: sum over groups of n_g times its squared class shares
  const auto end_group = [&] {
    if (n == 0) return;
    double squares = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      squares += own[c] * own[c];
      all[c] += own[c];
    }
    within += squares / n;
    count += n;
    ++number;
    n = 0;
    std::fill(own.begin(), own.end(), 0);
  };
  int group = -1;
  for (const std::size_t i : order) {
    if (groups[i] < 0) continue;
    if (groups[i] != group) end_group();
    group = groups[i];
    const LabelChunk& chunk = sample.chunks()[i];
    for (std::size_t j = 0; j < chunk.count; ++j) own[static_cast<std::size_t>(sample.labels(chunk)[j])] += 1;
    n += static_cast<double>(chunk.count);
  }
  end_group();
  double alike = 0;  // probability that two random records have the same class
  for (const double c : all) alike += c * c / (count * count);
  if (number < 2 || count <= number || alike >= 1) return 0;
  const double between = (within / count - alike) / (1 - alike);
  const double by_chance = (number - 1) / (count - 1);
  const double deviation = std::sqrt(2 * (number - 1) / std::max(1.0, 1 / alike - 1)) / count;
  const double more = (between - by_chance - kDeviations * deviation) / (1 - by_chance);
  return more < kLeast ? 0 : std::min(more, 1.0);
}

int replica_of(const LabelChunk& chunk, const std::vector<std::vector<SamplePlan::Run>>& shares) {
  const std::int64_t middle = chunk.first + static_cast<std::int64_t>(chunk.count) / 2;
  for (std::size_t share = 0; share < shares.size(); ++share)
    for (const SamplePlan::Run& run : shares[share])
      if (run.file == chunk.file && middle >= run.first && middle < run.first + run.count)
        return static_cast<int>(share);
  return -1;
}

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

}  // namespace

LabelSample::LabelSample(const Dataset& dataset, std::int64_t most, std::size_t most_files) {
  const bool labels = dataset.labelled && (dataset.kind == DataKind::samples || dataset.kind == DataKind::sequences);
  if (!labels) return;
  classes_ = dataset.classes;
  if (dataset.step_labels) {
    read_steps(dataset, most, most_files);
    return;
  }
  const bool dense = dataset.has_dense_classes();
  const bool mixes = !dense && classes_ >= 2 && classes_ <= kMostClasses;
  const std::int64_t each = dataset.label_shape.elems();
  if (dense) most = std::max<std::int64_t>(1, 8 * most / each);
  const std::size_t files = std::min(dataset.shards.size(), most_files);
  const std::int64_t stride =
      std::max<std::int64_t>(1, dataset.samples() / most);  // only every stride-th chunk is read
  whole_ = stride == 1 && files == dataset.shards.size();
  std::vector<std::int32_t> read;
  std::vector<float> numbers;
  for (std::size_t i = 0; i < files; ++i) {
    const std::size_t file = i * dataset.shards.size() / files;
    const Shard& shard = dataset.shards[file];
    const std::int64_t rows = shard.chunk_rows;
    const std::int64_t block = stride > 1 ? rows : std::max<std::int64_t>(rows, (1 << 16) / each / rows * rows);
    const SampleFile source(dataset, shard);
    for (std::int64_t first = 0; first < shard.samples; first += block * stride) {
      const std::int64_t count = std::min(block, shard.samples - first);
      if (dataset.has_numbers()) {
        numbers.resize(static_cast<std::size_t>(count * each));
        source.read_numbers(first, count, numbers.data());
        require_numbers(dataset, shard.path, first, numbers);
        continue;
      }
      read.resize(static_cast<std::size_t>(count * each));
      source.read_classes(first, count, read.data());
      require_classes(dataset, shard.path, first, read);
      for (std::int64_t row = 0; row < std::ssize(read); ++row) {
        const std::int32_t label = read[static_cast<std::size_t>(row)];
        if (mixes && row % rows == 0)
          chunks_.push_back(
              {.file = static_cast<int>(file), .first = first + row, .begin = labels_.size(), .count = 0});
        if (dataset.label_weights.ignores(label)) continue;
        add(label);
        if (!mixes) continue;
        labels_.push_back(label);
        ++chunks_.back().count;
      }
    }
  }
  if (!mixes) return;
  std::vector<int> by_chunk(chunks_.size()), by_file;
  std::iota(by_chunk.begin(), by_chunk.end(), 0);
  for (const LabelChunk& chunk : chunks_) by_file.push_back(chunk.file);
  chunk_mix_ = correlation(*this, by_chunk);
  file_mix_ = correlation(*this, by_file);
}

void LabelSample::add(std::int32_t label) {
  counts_.add(label);
  const auto of_class = static_cast<std::size_t>(label);
  if (of_class >= class_counts_.size()) class_counts_.resize(of_class + 1);
  ++class_counts_[of_class];
}

// Labels of steps are not mixed: a series is read as it is.
void LabelSample::read_steps(const Dataset& dataset, std::int64_t most, std::size_t most_files) {
  const std::size_t files = std::min(dataset.shards.size(), most_files);
  const std::int64_t stride = std::max<std::int64_t>(1, dataset.starts->back() / most);
  whole_ = stride == 1 && files == dataset.shards.size();
  for (std::size_t i = 0; i < files; ++i) {
    const std::size_t at = i * dataset.shards.size() / files;
    const Shard& shard = dataset.shards[at];
    const SampleFile source(dataset, shard);
    const std::int64_t end = shard.first + shard.samples;
    for (std::int64_t first = shard.first; first < end; first += shard.chunk_rows * stride) {
      data::Chunk chunk;
      chunk.begin = first, chunk.end = std::min(first + shard.chunk_rows, end), chunk.file = at;
      load_step_labels(dataset, source, chunk);
      for (const std::int32_t label : chunk.labels)
        if (!dataset.label_weights.ignores(label)) add(label);
    }
  }
}

double replica_mix(const LabelSample& sample, const std::vector<std::vector<SamplePlan::Run>>& shares) {
  // Shares of whole files are compared by file, because a search through all runs for each chunk would be quadratic.
  std::vector<int> of_file;
  bool whole = true;
  for (std::size_t share = 0; share < shares.size() && whole; ++share)
    for (const SamplePlan::Run& run : shares[share]) {
      if (of_file.size() <= static_cast<std::size_t>(run.file))
        of_file.resize(static_cast<std::size_t>(run.file) + 1, -1);
      int& owner = of_file[static_cast<std::size_t>(run.file)];
      whole = whole && owner < 0;
      owner = static_cast<int>(share);
    }
  std::vector<int> groups;
  for (const LabelChunk& chunk : sample.chunks())
    groups.push_back(!whole ? replica_of(chunk, shares)
                     : static_cast<std::size_t>(chunk.file) < of_file.size()
                         ? of_file[static_cast<std::size_t>(chunk.file)]
                         : -1);
  return correlation(sample, groups);
}

ClassMix class_mix(const LabelSample& sample, const SamplePlan* plan) {
  ClassMix mix{.chunks = sample.chunk_mix(), .files = sample.file_mix(), .known = !sample.empty()};
  if (sample.empty()) return mix;
  if (plan != nullptr && (plan->sharding() == Sharding::file || plan->sharding() == Sharding::node))
    mix.replicas = replica_mix(sample, plan->all_runs());
  return mix;
}

std::string mix_text(const ClassMix& mix) {
  if (mix.chunks == 0 && mix.files == 0 && mix.replicas == 0) return "mixed, by chunk, file and replica";
  return fmt::format("chunks {}, files {}, replicas {} sorted by class (0: mixed, 100: one class in each)",
                     percent(mix.chunks), percent(mix.files), percent(mix.replicas));
}

std::vector<std::string> label_warnings(const Dataset& dataset, const std::string& location) {
  std::vector<std::string> warnings;
  if (!dataset.label_sample || !dataset.label_sample->whole() || dataset.has_numbers()) return warnings;
  const LabelCounts& counts = dataset.label_sample->counts();
  std::string why;
  if (dataset.class_names.empty()) why = unlike_classes(counts, dataset.classes);
  if (why.empty()) why = empty_classes_text(counts, dataset.classes, dataset.class_names);
  if (!why.empty()) warnings.push_back(fmt::format("{}: {}", location, why));
  return warnings;
}

std::int64_t window_for(double chunk_mix, std::int64_t chunk_rows, std::int64_t window) {
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(window) * (1 + static_cast<double>(chunk_rows - 1) * chunk_mix)));
}

std::vector<std::string> mix_warnings(const ClassMix& mix, const SamplePlan& plan, const Dataset& dataset,
                                      const DataConfig& config) {
  constexpr std::int64_t kTooFew = 4;  // chunks in a window
  std::vector<std::string> warnings;
  std::int64_t rows = 1;
  for (const Shard& shard : dataset.shards) rows = std::max(rows, shard.chunk_rows);
  const std::int64_t chunks = (plan.samples() + rows - 1) / rows;
  const std::int64_t needed = std::min(chunks, window_for(mix.chunks, rows, config.window_chunks));
  constexpr const char* kImport = "import them again, which mixes them (echelon data import)";
  if (mix.chunks > 0 && !config.shuffle)
    warnings.push_back(fmt::format("{}: chunks are {} sorted by class, and data.shuffle = false keeps that order: {}",
                                   config.train, percent(mix.chunks), kImport));
  else if (mix.chunks > 0 && plan.window_chunks() * kTooFew < needed)
    warnings.push_back(fmt::format(
        "{}: chunks are {} sorted by class, and a shuffle of {} mixes too little; {}, or set data.buffer_mb = {:.0f} "
        "for {}",
        config.train, percent(mix.chunks), counted(plan.window_chunks(), "chunk"), kImport,
        std::ceil(static_cast<double>(needed * rows) * static_cast<double>(dataset.record_bytes()) / (1 << 20)),
        counted(needed, "chunk")));
  if (mix.replicas > 0)
    warnings.push_back(fmt::format(
        "{}: the samples of replicas are {} sorted by class, so that each replica trains different classes; set "
        "data.sharding = \"record\", or {}",
        config.train, percent(mix.replicas), kImport));
  return warnings;
}

}  // namespace echelon::inline data
