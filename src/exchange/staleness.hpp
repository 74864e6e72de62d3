// SPDX-License-Identifier: Apache-2.0
// The staleness of updates that asynchronous servers processed, in versions of the weights (asynchronous/rules.hpp). A
// tally counts the updates of one worker, for one or several pieces of the model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace echelon::inline exchange {

struct StalenessTally {
  std::map<std::int64_t, std::uint64_t> histogram;  // number of applied updates by staleness
  std::uint64_t applied = 0, dropped = 0;
  std::int64_t most = 0;  // largest staleness of an applied update
  double sum = 0;
  double held_s = 0;     // time that answers were held by the bound or by a replay's order, sum over pieces
  double longest_s = 0;  // the same, for the piece with the longest time: what the worker waited
  double meeting_s = 0;  // time that the worker waited for others at meetings

  double mean() const { return applied == 0 ? 0 : sum / static_cast<double>(applied); }
  void add(std::int64_t staleness, bool is_dropped) {
    if (is_dropped) {
      ++dropped;
      return;
    }
    ++histogram[staleness];
    ++applied;
    most = std::max(most, staleness);
    sum += static_cast<double>(staleness);
  }
  // Adds the time that answers for one piece were held.
  void add_held(double seconds) { held_s += seconds, longest_s += seconds; }
  // Adds the tally of another piece.
  StalenessTally& operator+=(const StalenessTally& other) {
    for (const auto& [staleness, count] : other.histogram) histogram[staleness] += count;
    applied += other.applied;
    dropped += other.dropped;
    most = std::max(most, other.most);
    sum += other.sum;
    held_s += other.held_s;
    longest_s = std::max(longest_s, other.longest_s);
    meeting_s += other.meeting_s;
    return *this;
  }
};

}  // namespace echelon::inline exchange
