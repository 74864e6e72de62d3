// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pairwise.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "base/check.hpp"
#include "base/hash_rng.hpp"

namespace echelon::test {
namespace {

constexpr std::uint64_t kCandidates = 3;  // per row

// The pairs that no row holds yet. Values are numbered over all axes.
class Missing {
 public:
  explicit Missing(const std::vector<Axis>& axes) {
    for (const Axis& axis : axes) {
      ECHELON_CHECK(!axis.values.empty(), "the axis '{}' has no value", axis.name);
      first_.push_back(values_);
      values_ += axis.values.size();
    }
    missing_.assign(values_ * values_, false);
    for (std::size_t a = 0; a < axes.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        for (std::size_t i = 0; i < axes[a].values.size(); ++i)
          for (std::size_t j = 0; j < axes[b].values.size(); ++j) {
            set(a, i, b, j, true);
            pairs_.push_back({.axis = a, .value = i, .other = b, .of_other = j});
          }
    left_ = pairs_.size();
  }

  bool any() const { return left_ > 0; }
  bool has(std::size_t axis, std::size_t value, std::size_t other, std::size_t of_other) const {
    return missing_[(first_[axis] + value) * values_ + first_[other] + of_other];
  }
  // Returns one of the missing pairs.
  const ValuePair& pick(std::uint64_t draw) const {
    for (std::size_t n = draw % pairs_.size();; n = (n + 1) % pairs_.size())
      if (const ValuePair& p = pairs_[n]; has(p.axis, p.value, p.other, p.of_other)) return p;
  }
  std::size_t gain(const PairwiseRow& row, std::size_t axis, std::size_t value) const {
    std::size_t count = 0;
    for (std::size_t other = 0; other < row.size(); ++other)
      count += other != axis && has(axis, value, other, row[other]) ? 1 : 0;
    return count;
  }
  std::size_t new_pairs(const PairwiseRow& row) const {
    std::size_t twice = 0;
    for (std::size_t a = 0; a < row.size(); ++a) twice += gain(row, a, row[a]);
    return twice / 2;
  }
  void cover(const PairwiseRow& row) {
    for (std::size_t a = 0; a < row.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) leave(a, row[a], b, row[b]);
  }
  void leave(std::size_t axis, std::size_t value, std::size_t other, std::size_t of_other) {
    left_ -= has(axis, value, other, of_other) ? 1 : 0;
    set(axis, value, other, of_other, false);
  }

 private:
  void set(std::size_t axis, std::size_t value, std::size_t other, std::size_t of_other, bool is) {
    const std::size_t a = first_[axis] + value, b = first_[other] + of_other;
    missing_[a * values_ + b] = missing_[b * values_ + a] = is;
  }
  std::vector<std::size_t> first_;  // by axis: number of its first value
  std::size_t values_ = 0, left_ = 0;
  std::vector<bool> missing_;
  std::vector<ValuePair> pairs_;
};

std::vector<std::size_t> shuffled(std::size_t n, const HashRng& rng) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[rng.below(i, i)]);
  return order;
}

class Generator {
 public:
  Generator(const std::vector<Axis>& axes, std::uint64_t seed, const std::function<bool(const PairwiseRow&)>& allowed)
      : axes_(axes), rng_(seed, "pairwise"), allowed_(allowed), missing_(axes) {}

  PairwiseTable run() {
    ECHELON_CHECK(is_allowed(neutral()), "the neutral row is not allowed");
    PairwiseTable table;
    for (std::uint64_t round = 0; missing_.any(); ++round) {
      const HashRng rng = rng_.at(round);
      const ValuePair pair = missing_.pick(rng.key());
      const std::optional<PairwiseRow> start = start_of(pair);
      if (!start) {
        table.forbidden.push_back(pair);
        missing_.leave(pair.axis, pair.value, pair.other, pair.of_other);
        continue;
      }
      PairwiseRow best;
      std::size_t most = 0;
      for (std::uint64_t c = 0; c < kCandidates; ++c) {
        PairwiseRow row = filled(*start, pair, rng.at(1 + c));
        if (const std::size_t gain = missing_.new_pairs(row); gain > most) best = std::move(row), most = gain;
      }
      missing_.cover(best);
      table.rows.push_back(std::move(best));
    }
    return table;
  }

 private:
  PairwiseRow neutral() const { return PairwiseRow(axes_.size(), 0); }
  bool is_allowed(const PairwiseRow& row) const { return !allowed_ || allowed_(row); }

  // Returns the neutral row with this pair, and one more value changed where the pair alone is not allowed.
  std::optional<PairwiseRow> start_of(const ValuePair& pair) const {
    PairwiseRow row = neutral();
    row[pair.axis] = pair.value, row[pair.other] = pair.of_other;
    if (is_allowed(row)) return row;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      if (axis == pair.axis || axis == pair.other) continue;
      for (std::size_t value = 1; value < axes_[axis].values.size(); ++value) {
        row[axis] = value;
        if (is_allowed(row)) return row;
      }
      row[axis] = 0;
    }
    return std::nullopt;
  }

  // Fills a row: each axis outside the pair takes the allowed value that adds most new pairs.
  PairwiseRow filled(PairwiseRow row, const ValuePair& pair, const HashRng& rng) const {
    for (const std::size_t axis : shuffled(axes_.size(), rng)) {
      if (axis == pair.axis || axis == pair.other) continue;
      std::vector<std::size_t> values = shuffled(axes_[axis].values.size(), rng.at(axis));
      std::stable_sort(values.begin(), values.end(), [&](std::size_t a, std::size_t b) {
        return missing_.gain(row, axis, a) > missing_.gain(row, axis, b);
      });
      const std::size_t before = row[axis], least = missing_.gain(row, axis, before);
      for (const std::size_t value : values) {
        row[axis] = value;
        if (value == before || missing_.gain(row, axis, value) <= least) {
          row[axis] = before;
          break;
        }
        if (is_allowed(row)) break;
        row[axis] = before;
      }
    }
    return row;
  }

  const std::vector<Axis>& axes_;
  const HashRng rng_;
  const std::function<bool(const PairwiseRow&)>& allowed_;
  Missing missing_;
};

}  // namespace

PairwiseTable pairwise_table(const std::vector<Axis>& axes, std::uint64_t seed,
                             const std::function<bool(const PairwiseRow&)>& allowed) {
  ECHELON_CHECK_GE(axes.size(), std::size_t{2}, "pairs need two axes");
  return Generator(axes, seed, allowed).run();
}

std::size_t count_pairs(const std::vector<Axis>& axes) {
  std::size_t pairs = 0;
  for (std::size_t a = 0; a < axes.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) pairs += axes[a].values.size() * axes[b].values.size();
  return pairs;
}

std::string text_of(const std::vector<Axis>& axes, const PairwiseRow& row) {
  std::string text;
  for (std::size_t a = 0; a < axes.size(); ++a)
    text += (a > 0 ? " " : "") + axes[a].name + "=" + axes[a].values[row[a]];
  return text;
}

std::string text_of(const std::vector<Axis>& axes, const ValuePair& pair) {
  return axes[pair.axis].name + "=" + axes[pair.axis].values[pair.value] + " " + axes[pair.other].name + "=" +
         axes[pair.other].values[pair.of_other];
}

PairwiseRow row_of(const std::vector<Axis>& axes, const std::string& text) {
  PairwiseRow row(axes.size(), 0);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::string name = word.substr(0, word.find('=')), value = word.substr(name.size() + 1);
    const auto axis = std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.name == name; });
    if (axis == axes.end()) throw std::runtime_error("no axis '" + name + "'");
    const auto found = std::find(axis->values.begin(), axis->values.end(), value);
    if (found == axis->values.end()) throw std::runtime_error("no value '" + word + "'");
    row[static_cast<std::size_t>(axis - axes.begin())] = static_cast<std::size_t>(found - axis->values.begin());
  }
  return row;
}

}  // namespace echelon::test
