// SPDX-License-Identifier: Apache-2.0
#include "data/sample_order.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace echelon::inline data {
namespace {

// Fisher-Yates shuffle with draws from hashes.
template <class T>
void permute(std::vector<T>& values, const HashRng& rng) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng.below(i, i)]);
}

}  // namespace

SampleOrder::SampleOrder(std::vector<Piece> pieces, bool shuffle, std::int64_t window_chunks, HashRng rng)
    : pieces_(std::move(pieces)), shuffle_(shuffle), window_chunks_(window_chunks), rng_(rng) {
  ECHELON_CHECK_GE(window_chunks, 1, "a window holds at least one chunk");
  if (shuffle_) permute(pieces_, rng_.at(0));
  starts_.reserve(pieces_.size() + 1);
  starts_.push_back(0);
  for (const Piece& piece : pieces_) starts_.push_back(starts_.back() + piece.count);
}

void SampleOrder::enter_window(std::int64_t window) {
  const auto first = static_cast<std::size_t>(window * window_chunks_);
  const std::size_t last = std::min(pieces_.size(), first + static_cast<std::size_t>(window_chunks_));
  records_.clear();
  for (std::size_t i = first; i < last; ++i)
    for (std::int64_t j = 0; j < pieces_[i].count; ++j) records_.push_back(pieces_[i].first + j);
  if (shuffle_) permute(records_, rng_.at(1).at(static_cast<std::uint64_t>(window)));
  window_ = window;
  window_start_ = starts_[first];
}

std::int64_t SampleOrder::at(std::int64_t position) {
  ECHELON_CHECK(position >= 0 && position < samples(), "position {} of {}", position, samples());
  const std::int64_t inside = position - window_start_;
  if (window_ < 0 || inside < 0 || inside >= static_cast<std::int64_t>(records_.size())) {
    const auto piece = std::upper_bound(starts_.begin(), starts_.end(), position) - starts_.begin() - 1;
    enter_window(piece / window_chunks_);
  }
  return records_[static_cast<std::size_t>(position - window_start_)];
}

}  // namespace echelon::inline data
