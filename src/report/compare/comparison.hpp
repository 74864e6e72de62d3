// SPDX-License-Identifier: Apache-2.0
// Compares two builds, or two states of a machine, by runs of the same experiments: what got worse, and by how much.
//
// Attempts of one experiment that differ only in the seed are repetitions. An experiment of BASE is compared with the
// experiment of NEW that has the same keys and facts (ranks, hosts, device ..), apart from those that `allowed` names.
// A figure is worse under these conditions:
//
//   throughput    the change exceeds the tolerance and its p value is below `significance` (noise.hpp). Tested are
//                 samples_per_s, the rate over wall time, which stalls of a few steps lower too, and, if all ranks
//                 step together, the median rate over steps, samples_per_s_median_step
//   accuracy,     the same, by Welch's t test over attempts; with one attempt per side, by the tolerance alone
//   loss
//   counts,       the smallest value of NEW exceeds the largest of BASE by more than the tolerance
//   memory
//
// A figure is better if the same holds with BASE and NEW exchanged. Paced runs have no accuracy. Only finished
// attempts count.
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "report/record.hpp"

namespace echelon::inline report {

enum class FigureGroup : std::uint8_t { throughput, accuracy, loss, counts, memory };
inline constexpr std::array kFigureGroups = {"throughput", "accuracy", "loss", "counts", "memory"};

struct CompareSettings {
  // One per group; absolute (0..1) for accuracy, relative for the others.
  std::array<double, kFigureGroups.size()> tolerance = {0.03, 0.005, 0.02, 0, 0.05};
  std::array<bool, kFigureGroups.size()> included = {true, true, true, true, true};
  double significance = 0.01;
  std::vector<std::string> allowed;  // config keys or sections ("exchange") and facts that may differ
};

enum class Change : std::uint8_t { none, better, worse, unknown };

struct ComparedFigure {
  std::string name, unit;
  FigureGroup group = FigureGroup::throughput;
  double base = kUnknown, fresh = kUnknown;  // medians over attempts; counts, memory: BASE's largest, NEW's smallest
  double change = kUnknown;                  // relative to base; for accuracy the absolute difference
  double low = kUnknown, high = kUnknown;    // confidence interval of `change`, if there is a test
  double attempts_needed = kUnknown;         // attempts per side to find a change of the tolerance in this noise
  double p = kUnknown;                       // one-sided p of a change at least this large in its direction
  Change verdict = Change::none;
  std::string note;  // why the verdict is unknown
};

struct ComparedRuns {
  std::string title;  // "lenet: data 2, synchronous, ring, 2 ranks on 1 host, global batch 64"
  int base_attempts = 0, fresh_attempts = 0;
  std::vector<std::string> allowed;  // differences that were allowed: "exchange.codec: none, then lossless"
  std::vector<ComparedFigure> figures;
  bool single_starts = false;  // one attempt per side: throughput noise is estimated from steps alone
};

struct Comparison {
  std::vector<ComparedRuns> runs;
  std::vector<std::string> notes;  // other commits, runs of NEW without a counterpart, attempts that were left out
  CompareSettings settings;
  int count(Change verdict) const;
};

// Throws ConfigError, naming all differences, if BASE and NEW differ in keys or facts that are not allowed, and for an
// unknown name in `allowed`. Throws DataError if a side has no finished attempt or, if throughput is compared, no
// metrics.jsonl or fewer than kLeastSteps timed steps.
Comparison compare_runs(const std::vector<RunRecord>& base, const std::vector<RunRecord>& fresh,
                        const CompareSettings& settings);

}  // namespace echelon::inline report
