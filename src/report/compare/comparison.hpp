// Two builds, or two states of a machine, compared by runs of the same experiments: what got worse, and by how much.
//
// Attempts of one experiment, equal but for the seed, are repetitions. An experiment of BASE is compared with that of
// NEW whose keys and facts (ranks, hosts, device ..) are equal, those that `allowed` names aside. A figure is worse
// where
//
//   throughput    the change exceeds the tolerance and its p value is below `significance` (noise.hpp): of
//                 samples_per_s, the rate over wall time, which stalls of a few steps lower too, and where ranks
//                 step together of the median over steps, samples_per_s_median_step
//   accuracy,     likewise by Welch's t test over attempts; with one attempt a side by the tolerance alone
//   loss
//   counts,       the least of NEW exceeds the largest of BASE by more than the tolerance
//   memory
//
// and better where the same holds with BASE and NEW exchanged. Paced runs have no accuracy. Only finished attempts
// count.
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
  // By group: accuracy in 0..1, the others relative.
  std::array<double, kFigureGroups.size()> tolerance = {0.03, 0.005, 0.02, 0, 0.05};
  std::array<bool, kFigureGroups.size()> wanted = {true, true, true, true, true};
  double significance = 0.01;
  std::vector<std::string> allowed;  // keys or sections of the config ("exchange"), and facts, that may differ
};

enum class Change : std::uint8_t { none, better, worse, unknown };

struct ComparedFigure {
  std::string name, unit;
  FigureGroup group = FigureGroup::throughput;
  double base = kUnknown, fresh = kUnknown;  // medians over attempts; of counts and memory their largest and least
  double change = kUnknown;                  // relative to base; of accuracy the difference
  double low = kUnknown, high = kUnknown;    // confidence interval of `change`, where there is a test
  double attempts_needed = kUnknown;         // a side, to find a change of the tolerance in this noise (noise.hpp)
  double p = kUnknown;                       // one-sided, of a change at least this far in its direction
  Change verdict = Change::none;
  std::string note;  // why it is unknown
};

struct ComparedRuns {
  std::string title;  // "lenet: data 2, synchronous, ring, 2 ranks on 1 host, global batch 64"
  int base_attempts = 0, fresh_attempts = 0;
  std::vector<std::string> allowed;  // differences that were allowed: "exchange.codec: none, then lossless"
  std::vector<ComparedFigure> figures;
  bool single_starts = false;  // one attempt a side: the noise of throughput is that of steps alone
};

struct Comparison {
  std::vector<ComparedRuns> runs;
  std::vector<std::string> notes;  // other commits, runs of NEW without a counterpart, attempts left out
  CompareSettings settings;
  int count(Change verdict) const;
};

// Throws ConfigError where BASE or NEW differ in keys or facts that are not allowed (with all of them), or for an
// unknown name in `allowed`; DataError where a side has no finished attempt, no metrics.jsonl or fewer than kLeastSteps
// timed steps though throughput is wanted.
Comparison compare_runs(const std::vector<RunRecord>& base, const std::vector<RunRecord>& fresh,
                        const CompareSettings& settings);

}  // namespace echelon::inline report
