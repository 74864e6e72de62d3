// SPDX-License-Identifier: Apache-2.0
#include "data/series_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::inline data {
namespace {

// 0, 1, .. by key(i), then in order.
template <class Key>
std::vector<std::int64_t> sorted_by(std::int64_t count, const Key& key) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return key(a) < key(b); });
  return order;
}

}  // namespace

SeriesRows::SeriesRows(const std::vector<std::int64_t>& series, std::int64_t end, std::int64_t rows, Ragged ragged,
                       const std::optional<HashRng>& rng)
    : rows_(static_cast<std::size_t>(rows)), ragged_(ragged) {
  const std::int64_t count = std::lower_bound(series.begin(), series.end(), end) - series.begin();
  const auto first = [&](std::int64_t of) { return series[static_cast<std::size_t>(of)]; };
  enum Purpose : std::uint64_t { kDeal, kRow, kOrder };
  const auto drawn = [&](Purpose what, std::int64_t of) {
    return rng ? rng->at(what).bits(static_cast<std::uint64_t>(of)) : 0;
  };
  using Load = std::pair<std::int64_t, std::int64_t>;  // windows of a row, its number
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::int64_t row = 0; row < rows; ++row) loads.emplace(0, row);
  std::vector<std::vector<std::int64_t>> dealt(static_cast<std::size_t>(rows));
  std::vector<std::int64_t> windows(static_cast<std::size_t>(rows), 0);
  for (const std::int64_t of :
       sorted_by(count, [&](std::int64_t i) { return std::pair(first(i) - first(i + 1), drawn(kDeal, i)); })) {
    const std::int64_t row = loads.top().second;
    loads.pop();
    dealt[static_cast<std::size_t>(row)].push_back(of);
    loads.emplace(windows[static_cast<std::size_t>(row)] += first(of + 1) - first(of), row);
  }
  const std::vector<std::int64_t> order = sorted_by(rows, [&](std::int64_t row) {
    return std::pair(drawn(kRow, row), rng ? 0 : -windows[static_cast<std::size_t>(row)]);
  });
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const std::vector<std::int64_t>& own = dealt[static_cast<std::size_t>(order[row])];
    for (const std::int64_t i : sorted_by(std::ssize(own), [&](std::int64_t at) {
           const std::int64_t of = own[static_cast<std::size_t>(at)];
           return std::pair(drawn(kOrder, of), rng ? 0 : of);
         }))
      for (std::int64_t id = first(own[static_cast<std::size_t>(i)]); id < first(own[static_cast<std::size_t>(i)] + 1);
           ++id)
        rows_[row].push_back(id);
  }
  const auto [least, most] = std::minmax_element(windows.begin(), windows.end());
  steps_ = ragged == Ragged::drop ? *least : *most;
  if (ragged == Ragged::wrap && *least == 0)
    throw ConfigError(fmt::format(
        "data.order = \"stream\" deals each series to one row of the batch, and {} series are too few for {}; "
        "batch.global is at most {}, or set data.ragged = \"zero_weight\"",
        count, counted(rows, "row"), count));
}

SampleSlot SeriesRows::at(std::int64_t step, std::int64_t row) const {
  const std::vector<std::int64_t>& own = rows_[static_cast<std::size_t>(row)];
  if (own.empty()) return {.id = 0, .counts = false};
  return {.id = own[static_cast<std::size_t>(step % std::ssize(own))],
          .counts = step < std::ssize(own) || ragged_ == Ragged::wrap};
}

}  // namespace echelon::inline data
