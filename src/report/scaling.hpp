// Scaling studies: runs of one experiment on several numbers of ranks, with speed-up, efficiency and the parts of a
// step's time. Pure functions of records; nothing throws.
//
// Runs of one group (record.hpp) with the same global batch on different numbers of ranks are a strong study; with the
// same batch per replica, a weak one; a run may be in both. With S(k) the samples/s of k ranks and k0 the fewest ranks
// of the study:
//   speed-up(k) = S(k) / S(k0)        efficiency(k) = speed-up(k) * k0 / k
// S(k) is the rate of an attempt (samples_per_s, figures_list.hpp). Only finished attempts count. Attempts of one row
// are repetitions: its rate is the median of theirs and the spread their range; the spread of a single attempt is the
// quartiles of its steps. Runs on the same number of ranks that differ in mesh, strategy, algorithm, codec or batches
// are rows of their own. The first row is the baseline: fewest ranks, then fewest servers, hosts and parts of the
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

// "synchronous, ring"; of a strategy without an all-reduce "asynchronous".
std::string exchange_name(const RunFigures& run);

// Repetitions of one run: the same ranks, mesh, batches, exchange and codec, and configs of one group. The figures are
// combined by combine_runs.
struct ScalingRow : RunFigures {
  int attempts = 0;
  std::string mesh_text, codec_text;
  std::string hash;        // first digits of the config's hash; "1450d256 + 2" with those of two other seeds
  std::string batch_text;  // per replica: "32", or "16+48" where shares differ
  Spread rate, accuracy;
  double speed_up = kUnknown, efficiency = kUnknown;
  bool has_split = false;
  TimePercent percent{};
  // Over all its attempts; the first step of each, which is not timed, included.
  double counted_steps() const { return static_cast<double>(attempts) * static_cast<double>(timed_steps + 1); }
  // Samples that entered the model in the same time, of all ranks.
  double counted_samples() const {
    return samples_trained > 0 ? samples_trained : counted_steps() * static_cast<double>(global_batch);
  }
  // FLOP/s of a rank in a phase that took `seconds` of all these steps and needs so many FLOPs a sample; unknown for a
  // phase that took no time.
  double flops_per_s(double flops_of_sample, double seconds) const;
  double hidden_share() const;  // hidden / (hidden + exposed) time of the exchange; unknown where there was none
};

struct Study {
  StudyKind kind = StudyKind::single;
  std::string title;  // "strong scaling: lenet, global batch 64"
  std::string facts;  // model, parameters, device, exchange
  bool paced = false;
  int baseline_ranks = 0;  // 0: no speed-up
  std::vector<ScalingRow> rows;
  std::vector<std::string> notes;
};

struct LeftOut {
  std::string folder, state, reason;
};

struct ScalingReport {
  std::vector<std::string> answers;  // headlines of verdicts, told first (answers.hpp; make_scaling leaves them empty)
  std::vector<Study> studies;
  std::vector<LeftOut> left_out;  // attempts that were found but not counted
  std::vector<RunRecord> counted;
  std::vector<std::string> warnings;  // of codecs that cost accuracy; of runs that are in no table together
};

// Median, least and largest of the values that are known.
Spread range_of(std::vector<double> values);
// Repetitions of one run (at least one) as a row; speed_up and efficiency stay unknown.
ScalingRow make_row(const std::vector<const RunRecord*>& runs);

// Strong studies first, then weak ones, then runs without a partner; an attempt may be in a strong and a weak study.
ScalingReport make_scaling(const std::vector<RunRecord>& runs);

}  // namespace echelon::inline report
