// The staleness of updates that asynchronous servers took up, counted in versions of the weights that they were applied
// to (asynchronous/rules.hpp). A tally is of one worker's updates, of one part of the model or of several.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace echelon::inline exchange {

struct StalenessTally {
  std::map<std::int64_t, std::uint64_t> histogram;  // updates that were applied, by their staleness
  std::uint64_t applied = 0, dropped = 0;
  std::int64_t most = 0;  // of those that were applied
  double sum = 0;
  double held_s = 0;     // time that answers to its updates were held: by the bound, or by the order of a replay
  double longest_s = 0;  // the same of the part of the model whose answers were held longest: that the worker waited
  double meeting_s = 0;  // time that it waited at meetings for the others

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
  // Of one part of the model.
  void add_held(double seconds) { held_s += seconds, longest_s += seconds; }
  // Of another part of the model.
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
