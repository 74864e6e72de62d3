// SPDX-License-Identifier: Apache-2.0
// Scaling studies: runs of one experiment on several numbers of ranks, with speed-up, efficiency and the breakdown of
// step time. Pure functions of records; none throws.
//
// Runs of one group (record.hpp) on different numbers of ranks form a strong-scaling study if they have the same global
// batch, and a weak-scaling study if they have the same batch per replica; a run may be in both. Let S(k) be the rate
// of k ranks in samples/s and k0 the fewest ranks of the study:
//   speed-up(k) = S(k) / S(k0)        efficiency(k) = speed-up(k) * k0 / k
// S(k) is the rate of an attempt (samples_per_s, figures_list.hpp). Only finished attempts count. Attempts of one row
// are repetitions: the row's rate is their median and its spread their range; the spread of a single attempt is given
// by the quartiles of its steps. Runs on the same number of ranks that differ in mesh, strategy, algorithm, codec or
// batches are separate rows. The first row is the baseline: fewest ranks, then fewest servers, hosts and parts of the
// model.
#pragma once

#include <string>
#include <vector>

#include "report/record.hpp"

namespace echelon::inline report {

enum class StudyKind : std::uint8_t { strong, weak, single };

struct Spread {
  double median = kUnknown, low = kUnknown, high = kUnknown;
};

// "synchronous, ring"; for a strategy without an all-reduce "asynchronous".
std::string exchange_name(const RunFigures& run);

// Repetitions of one run: the same ranks, mesh, batches, exchange and codec, and configs of one group. The figures are
// combined by combine_runs.
struct ScalingRow : RunFigures {
  int attempts = 0;
  std::string mesh_text, codec_text;
  std::string hash;        // first digits of the config's hash; "1450d256 + 2" if two more seeds follow
  std::string batch_text;  // per replica: "32", or "16+48" if the shares differ
  Spread rate, accuracy;
  double speed_up = kUnknown, efficiency = kUnknown;
  bool has_split = false;
  TimePercent percent{};
  // Steps of all attempts, including the first step of each, which is not timed.
  double counted_steps() const { return static_cast<double>(attempts) * static_cast<double>(timed_steps + 1); }
  // Samples of all ranks that entered the model in these steps.
  double counted_samples() const {
    return samples_trained > 0 ? samples_trained : counted_steps() * static_cast<double>(global_batch);
  }
  // Returns the FLOP/s of a rank in a phase that took `seconds` over all these steps and needs `flops_of_sample` per
  // sample; unknown for a phase that took no time.
  double flops_per_s(double flops_of_sample, double seconds) const;
  double hidden_share() const;  // hidden / (hidden + exposed) exchange time; unknown if both are 0
};

struct Study {
  StudyKind kind = StudyKind::single;
  std::string title;  // "strong scaling: lenet, global batch 64"
  std::string facts;  // model, parameters, device and exchange
  bool paced = false;
  int baseline_ranks = 0;  // 0: no speed-up
  std::vector<ScalingRow> rows;
  std::vector<std::string> notes;
};

struct LeftOut {
  std::string folder, state, reason;
};

struct ScalingReport {
  std::vector<std::string> answers;  // headlines of verdicts, printed first (answers.hpp); not filled by make_scaling
  std::vector<Study> studies;
  std::vector<LeftOut> left_out;  // attempts that were found but not counted
  std::vector<RunRecord> counted;
  std::vector<std::string> warnings;  // about codecs that cost accuracy, and runs that share no table
};

// Returns median, minimum and maximum of the known values.
Spread range_of(std::vector<double> values);
// Makes a row of the repetitions of one run (at least one); speed_up and efficiency stay unknown.
ScalingRow make_row(const std::vector<const RunRecord*>& runs);

// Returns strong studies, then weak ones, then runs without a partner. An attempt may be in a strong and a weak study.
ScalingReport make_scaling(const std::vector<RunRecord>& runs);

}  // namespace echelon::inline report
