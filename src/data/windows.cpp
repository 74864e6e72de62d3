// SPDX-License-Identifier: Apache-2.0
#include "data/windows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::inline data {
namespace {

constexpr std::int64_t kUsualWindow = 64;
constexpr std::int64_t kTokensTogether = 16384;  // of windows: approximate number of steps per chunk

std::int64_t longest(const Starts& starts) {
  std::int64_t most = 0;
  for (std::size_t i = 1; i < starts->size(); ++i) most = std::max(most, (*starts)[i] - (*starts)[i - 1]);
  return most;
}

// Cuts the text into windows of T tokens, each followed by one more token.
void cut_into_windows(Dataset& dataset, std::int64_t steps) {
  set_length(dataset, steps);
  std::int64_t first = 0;
  for (Shard& shard : dataset.shards) {
    shard.samples = (shard.tokens - 1) / steps;
    if (shard.samples < 1)
      throw DataError(fmt::format("{}: holds {}, but a window takes {} and the one after them{}", shard.path,
                                  counted(shard.tokens, "token"), steps,
                                  shard.tokens > 1
                                      ? fmt::format("; data.sequence_length may be at most {}", shard.tokens - 1)
                                      : "; no data.sequence_length is short enough"));
    shard.first = first;
    shard.chunk_rows = std::min(shard.samples, std::max<std::int64_t>(64, kTokensTogether / steps));
    first += shard.samples;
  }
}

// Cuts series into windows of T steps, the last of which may be shorter.
void cut_series(Dataset& dataset, std::int64_t steps) {
  if (dataset.labelled && !dataset.step_labels)
    throw ConfigError(fmt::format(
        "data.order = \"stream\" cuts series into windows and needs a label for each step; {} has one for each "
        "sequence; leave the order out",
        dataset.shards[0].path));
  set_length(dataset, std::min(steps, longest(dataset.starts)));
  auto starts = std::make_shared<std::vector<std::int64_t>>(1, 0);
  auto series = std::make_shared<std::vector<std::int64_t>>(1, 0);
  std::int64_t first = 0, of = 0;  // window, series
  for (Shard& shard : dataset.shards) {
    const std::int64_t end = of + shard.samples;
    std::int64_t most = 1;  // windows of a series
    for (; of < end; ++of) {
      const std::int64_t begin = (*dataset.starts)[static_cast<std::size_t>(of)];
      const std::int64_t length = (*dataset.starts)[static_cast<std::size_t>(of) + 1] - begin;
      for (std::int64_t at = 0; at < length; at += steps) starts->push_back(begin + std::min(at + steps, length));
      most = std::max(most, (length + steps - 1) / steps);
      series->push_back(std::ssize(*starts) - 1);
    }
    shard.first = first;
    shard.samples = series->back() - first;
    // Records of other files are read whole.
    const std::int64_t together =
        dataset.hdf5 ? shard.chunk_rows * most : std::max<std::int64_t>(64, kTokensTogether / steps);
    shard.chunk_rows = std::min(shard.samples, together);
    first = series->back();
  }
  dataset.starts = std::move(starts);
  dataset.series = std::move(series);
}

}  // namespace

void set_length(Dataset& dataset, std::int64_t steps) {
  Shape& shape = dataset.sample_shape;
  shape = shape.with_front(steps);
}

void choose_length(Dataset& dataset, std::int64_t requested) {
  const std::int64_t window = requested > 0 ? requested : kUsualWindow;
  if (dataset.kind == DataKind::text) return cut_into_windows(dataset, window);
  if (dataset.kind == DataKind::sequences && dataset.stream) return cut_series(dataset, window);
  if (!dataset.has_sequences()) {
    if (requested > 0)
      throw ConfigError(fmt::format("{}: holds samples of one shape: data.sequence_length is for text and sequences",
                                    dataset.shards[0].path));
    return;
  }
  const std::int64_t most = longest(dataset.starts);
  set_length(dataset, requested > 0 ? std::min(requested, most) : most);
  if (dataset.kind != DataKind::pairs) return;
  const std::int64_t fed = longest(dataset.target_starts) + 1;
  dataset.target_length = requested > 0 ? std::min(requested, fed) : fed;
}

}  // namespace echelon::inline data
