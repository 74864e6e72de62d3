// SPDX-License-Identifier: Apache-2.0
// Decides which settings of an environment are shown to be faster than its single worker at equal quality, and which of
// these is recommended, by the rules of verdict.hpp. It writes no words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/field.hpp"

namespace echelon::inline report {

// A setting on more ranks, compared with the single worker.
struct Rival {
  const Setting* setting = nullptr;
  Contest speed;
  std::optional<Contest> quality = {};  // by the metric, if that decides: no goal was reached
  bool diverges = false;                // in a larger share of its repetitions than the single worker
  bool misses_goal = false;             // in some repetition, although some setting reached it
  bool winner = false;                  // shown to be faster by more than the least gain, at equal quality
  bool slower = false;                  // shown to gain less than the least gain
  // It diverges; or it misses the goal, which one worker reached in every repetition or more often; or its metric is
  // shown to be worse by more than the margin.
  bool worse = false;
  bool not_worse = false;  // shown to be of equal quality; with a goal, it was reached
  bool faster = false;     // shown to be faster, whatever its quality
  bool compared() const { return speed.pairs() > 0 || diverges; }
};

// The best setting of a group, and the settings that are not shown to be worse than it.
struct Champion {
  const Setting* best = nullptr;          // by the mean
  const Setting* chosen = nullptr;        // the choice among the tie, by cost, ranks, simplicity
  std::vector<const Setting*> ties = {};  // the other settings of the tie
};

class Judge {
 public:
  explicit Judge(const Field& field);

  const Field& field() const { return field_; }
  const std::vector<Rival>& rivals() const { return rivals_; }
  Answer answer() const;
  // The best winner. If some winners keep all limits of [goal], only those are considered.
  std::optional<Champion> recommended() const;
  // The number of further repetitions that would find the observed effect with probability kPower; 0: not known.
  int needed() const;
  int pairs() const;  // smallest number of pairs of any compared setting
  std::vector<TestRecord> tests() const;

  // Returns the best of the candidates by this measure, and the candidates that it is not shown to beat by more than
  // the threshold (1.1 times, or a difference). Returns none if no candidate is known with enough repetitions.
  std::optional<Champion> champion(const Measure& measure, const std::vector<const Setting*>& candidates,
                                   double threshold) const;
  // Settings whose quality allows them to be recommended, the single worker included.
  std::vector<const Setting*> of_equal_quality() const;
  bool as_fast_as_one(const Rival& rival) const;  // equivalent within the least gain (TOST)

 private:
  const Setting& cheapest_simplest(std::vector<const Setting*> tied) const;
  int needed_for(const Rival& rival, bool to_win) const;

  const Field& field_;
  std::vector<Rival> rivals_;
  std::vector<Judged> judged_;
};

// Whether the setting keeps the limits of [goal] other than the target: cost, deadline, efficiency, samples.
bool keeps_limits(const Field& field, const Setting& setting);

}  // namespace echelon::inline report
