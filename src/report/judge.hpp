// Which settings of an environment are shown to be faster than its single worker at equal quality, and which of these
// is recommended: the rules of verdict.hpp. No words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/field.hpp"

namespace echelon::inline report {

// A setting of more ranks beside the single worker.
struct Rival {
  const Setting* setting = nullptr;
  Contest speed;
  std::optional<Contest> quality = {};  // of the metric, where that decides: without a goal that was reached
  bool diverges = false;                // in a larger share of its repetitions than the single worker
  bool misses_goal = false;             // in a repetition, where some setting reached it
  bool winner = false;                  // shown to be faster by more than the least gain, at equal quality
  bool slower = false;                  // shown to gain less than that
  // It diverges; or it misses the goal, which one worker reached in every repetition or in more; or its metric is shown
  // to be worse by more than the margin.
  bool worse = false;
  bool not_worse = false;  // shown; with a goal: it was reached
  bool faster = false;     // shown, whatever its quality
  bool compared() const { return speed.pairs() > 0 || diverges; }
};

// A group of settings among which none is told apart from the best.
struct Champion {
  const Setting* best = nullptr;          // by the mean
  const Setting* chosen = nullptr;        // of the tie, by cost, ranks, simplicity
  std::vector<const Setting*> ties = {};  // the others
};

class Judge {
 public:
  explicit Judge(const Field& field);

  const Field& field() const { return field_; }
  const std::vector<Rival>& rivals() const { return rivals_; }
  Answer answer() const;
  // Of the winners; those that keep all limits of [goal], where some do.
  std::optional<Champion> recommended() const;
  // More repetitions that would find the effect seen with kPower; 0: they are not known.
  int needed() const;
  int pairs() const;  // the least of those compared
  std::vector<TestRecord> tests() const;

  // The best of the candidates on this measure, with those that it is not shown to beat by more than the threshold
  // (1.1 times, or a difference); none where fewer than two candidates are known or too few repetitions were run.
  std::optional<Champion> champion(const Measure& measure, const std::vector<const Setting*>& candidates,
                                   double threshold) const;
  // Settings that may be recommended by their quality, the single worker included.
  std::vector<const Setting*> of_equal_quality() const;
  bool as_fast_as_one(const Rival& rival) const;  // equivalent within the least gain (TOST)

 private:
  const Setting& cheapest_simplest(std::vector<const Setting*> tied) const;
  int needed_for(const Rival& rival, bool to_win) const;

  const Field& field_;
  std::vector<Rival> rivals_;
  std::vector<Judged> judged_;
};

// [goal]'s limits beside the target: cost, deadline, efficiency, samples.
bool keeps_limits(const Field& field, const Setting& setting);

}  // namespace echelon::inline report
