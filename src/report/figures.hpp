// SPDX-License-Identifier: Apache-2.0
// The figures of a step, an epoch and a run. Each is described once.
//
//   metrics.jsonl   one StepFigures per step, one EpochFigures per epoch
//   summary.json    the RunFigures of an attempt
//
// `each(figures, visit)` (figures_list.hpp) calls visit(Figure, member) for every member, in the order of the file.
// Training fills the structs; files, sums over ranks, rows of reports and `echelon report --figures` are derived from
// the list. To add a figure, add a member, its line in `each`, and the code that fills it. Meanings and units are given
// in that list only.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace echelon::inline report {

// The value of a figure that was not measured; null in files.
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// How the values of several ranks are combined: same (equal on all ranks), sum, mean over the ranks that train,
// maximum, a list by rank, or the value of rank 0.
enum class OverRanks : std::uint8_t { same, sum, mean, largest, list, rank0 };
// How the values of several steps are combined: none (there is one value), sum over the attempt, mean, median and
// quartiles without the first step, or the newest value.
enum class OverSteps : std::uint8_t { none, sum, mean, quartiles, newest };
// How the repetitions of a run are combined into a row of a report: value of the first, median, maximum or sum.
enum class OverRuns : std::uint8_t { first, median, largest, sum };
// How a file represents an unknown figure: as null, or by leaving the field out.
enum class Unknown : std::uint8_t { null, left_out };

struct Figure {
  const char* name;
  const char* unit;  // "" for words and plain counts
  OverRanks ranks;
  OverSteps steps;
  OverRuns runs;
  const char* meaning;
  Unknown unknown = Unknown::null;
};

struct Quartiles {
  double median = kUnknown, p25 = kUnknown, p75 = kUnknown;
};
// Quartiles of values in any order, by linear interpolation between order statistics (quantile q is at index q (n-1));
// zeros for an empty list. O(n log n).
Quartiles quartiles_of(std::vector<double> values);

// The parts of the time of one or more steps. They and `other_s` add up to `total_s`.
struct StepTimes {
  double total_s = 0;
  double data_wait_s = 0;  // waiting for the loader and copying to the device
  double forward_s = 0;
  double backward_s = 0;
  double split_s = 0;     // waiting for the other ranks of the same replica
  double exchange_s = 0;  // time the compute thread was blocked, the step's control sum included
  double optimiser_s = 0;
  double evaluation_s = 0;
  double checkpoint_s = 0;  // includes the wait for the end of the exchange
  double hooks_s = 0;       // records, comparison of replicas, meetings
  double other_s() const;   // max(0, total_s - sum of the parts)
  double after_step_s() const { return evaluation_s + checkpoint_s + hooks_s; }
  double training_s() const { return total_s - after_step_s(); }
};
struct TimePart {
  const char* name;
  double StepTimes::*seconds;
};
inline constexpr std::array<TimePart, 9> kClaimedTimes = {{{"data", &StepTimes::data_wait_s},
                                                           {"forward", &StepTimes::forward_s},
                                                           {"backward", &StepTimes::backward_s},
                                                           {"split", &StepTimes::split_s},
                                                           {"exchange", &StepTimes::exchange_s},
                                                           {"optimizer", &StepTimes::optimiser_s},
                                                           {"evaluation", &StepTimes::evaluation_s},
                                                           {"checkpoint", &StepTimes::checkpoint_s},
                                                           {"hooks", &StepTimes::hooks_s}}};
inline constexpr std::size_t kTimeParts = kClaimedTimes.size() + 1;  // and "other"
const char* time_part_name(std::size_t part);
// Whether most runs have no time in this part; tables leave such parts out where they are zero.
bool is_seldom(std::size_t part);
StepTimes& operator+=(StepTimes& sum, const StepTimes& more);
// The parts in percent, rounded to tenths that sum to exactly 100 (largest-remainder method); zeros if nothing was
// measured.
using TimePercent = std::array<double, kTimeParts>;
TimePercent time_percent(const StepTimes& times);
// The same for any parts of a whole.
std::vector<double> percent_parts(const std::vector<double>& parts);

// The mesh of data x pipeline x tensor x space ranks.
struct MeshShape {
  int data = 1, pipeline = 1, tensor = 1, space = 1;
  int parts() const { return pipeline * tensor * space; }
};

// Lists with one entry per rank.
struct RankTimes {
  std::vector<double> compute, exposed, exchange;  // s
  std::vector<double> wire_bytes;
};

// Figures of a codec; unknown if nothing was encoded.
struct CodecFigures {
  double bytes_before = kUnknown;  // size of all values that were encoded
  double bytes_after = kUnknown;   // size of the encoded messages
  double seconds = kUnknown;
  double residual_norm = kUnknown, density = kUnknown, tau = kUnknown;  // lossy codecs only
};

// Figures of asynchronous updates, by worker.
struct StalenessFigures {
  std::vector<double> applied, dropped;  // parts of updates
  std::vector<double> mean, largest;     // versions, over the parts that were applied
  std::vector<double> waited_s;          // for the slowest worker, on the part of the model that was held longest
};

struct StepFigures {
  std::int64_t step = 0, epoch = 0;
  double lr = 0, loss = kUnknown, samples = 0, samples_per_s = 0;
  StepTimes time;
  double exchange_exposed_s = kUnknown, exchange_hidden_s = kUnknown, wire_bytes = kUnknown, arrival_skew_s = kUnknown;
  std::optional<RankTimes> ranks_before;
  double tokens = kUnknown, tokens_per_s = kUnknown;
  double gradient_norm = kUnknown, loss_scale = kUnknown;
  std::optional<bool> skipped;
  std::optional<CodecFigures> codec;
  double drift = kUnknown;
};

struct EpochFigures {
  std::int64_t epoch = 0, step = 0;
  double train_loss = kUnknown, test_loss = kUnknown, test_accuracy = kUnknown;
  double test_perplexity = kUnknown, test_top5_accuracy = kUnknown, test_macro_f1 = kUnknown, test_mean_iou = kUnknown;
  double test_auc = kUnknown, test_mae = kUnknown, test_r2 = kUnknown;
  std::vector<double> test_recall = {}, test_precision = {}, test_f1 = {}, test_iou = {};
  double train_eval_loss = kUnknown, train_accuracy = kUnknown;
  double seconds = kUnknown;
};

struct CheckpointFigures {
  std::int64_t step = 0;
  double bytes = 0, blocked_s = 0, write_s = 0;
};

struct RunFigures {
  std::string name, config_hash, state;
  int ranks = 0;  // ranks that train
  MeshShape mesh;
  int servers = 0, hosts = 0;
  std::string device, device_text;
  bool paced = false;
  std::string shaped;  // "1 Gbit/s, 50 us, 2 ranks a host"; "": messages were not delayed
  std::string dtype;
  int threads = 0;
  std::string model;
  std::int64_t parameters = 0;
  double forward_flops = kUnknown, backward_flops = kUnknown;
  double peak_flops = kUnknown;
  std::string strategy, algorithm, codec = "none";
  std::int64_t global_batch = 0;
  std::vector<std::int64_t> batch_per_replica;
  std::int64_t accumulation = 1;
  std::string scaling;
  std::int64_t epochs = 0, steps = 0, timed_steps = 0;
  Quartiles samples_per_s, step_s;
  double samples_per_s_overall = kUnknown;
  double rate_samples = kUnknown, rate_s = kUnknown, evaluation_s = kUnknown, checkpoint_s = kUnknown;
  double samples_trained = kUnknown;
  StepTimes time_split_s;
  double wire_bytes_per_step = kUnknown, formula_bytes_per_step = kUnknown, messages_per_step = kUnknown,
         warm_wire_bytes_per_step = kUnknown, library_bytes_per_step = kUnknown, split_bytes_per_step = kUnknown,
         halo_bytes_per_step = kUnknown, down_bytes_per_step = kUnknown;
  double allocations_per_step = kUnknown, allocated_bytes_per_step = kUnknown;
  double exchange_exposed_s = kUnknown, exchange_hidden_s = kUnknown, codec_s = kUnknown;
  double arrival_skew_s = kUnknown, skew_wait_s = kUnknown;
  std::vector<std::string> slow_ranks;
  double bytes_read = kUnknown, bytes_used = kUnknown;
  double samples_never = kUnknown, samples_once = kUnknown, samples_repeated = kUnknown;
  double drift = kUnknown, noise_scale = kUnknown, train_eval_loss = kUnknown, train_accuracy = kUnknown;
  double train_loss = kUnknown, loss_oscillation = kUnknown, test_loss = kUnknown, test_accuracy = kUnknown;
  double test_top5_accuracy = kUnknown, test_macro_f1 = kUnknown, test_mean_iou = kUnknown;
  double test_auc = kUnknown, test_mae = kUnknown, test_r2 = kUnknown;
  std::vector<double> test_recall, test_precision, test_f1, test_iou;
  std::vector<double> card_peak, card_mean;
  std::vector<double> peak_rss_mb, device_peak_mb, activations_spared_mb;
  double cpu_s = kUnknown;  // sum over ranks
  double start_to_first_step_s = kUnknown, warmup_steps = kUnknown, warmup_s = kUnknown;
  std::string weights_checksum;
  std::optional<Quartiles> tokens_per_s;
  std::string loss_unit;
  double test_perplexity = kUnknown;
  std::optional<CodecFigures> coded;
  // Whether ops computed and then slept (device.pace_ms).
  bool computes_at_pace() const { return !pace_s.empty() && pace_s.front() > 0; }
  std::vector<double> pace_s = {kUnknown}, pace_over_steps = {kUnknown}, pace_worst = {kUnknown};
  double updates_applied = kUnknown, updates_dropped = kUnknown, staleness_mean = kUnknown,
         staleness_largest = kUnknown;
  std::optional<StalenessFigures> staleness_by_worker;
  double updates_held = kUnknown;
  std::vector<double> gradients_dropped, samples_dropped;
  double checkpoints = kUnknown, checkpoint_blocked_s = kUnknown, checkpoint_write_s = kUnknown;
  std::string best_checkpoint;
  double best_figure = kUnknown;
  std::vector<std::string> damaged_checkpoints;
  std::vector<std::string> findings;
  // Whether all ranks take each step together, so that the time of a step characterises the run.
  bool steps_together() const { return !std::isnan(samples_per_s.p25); }
};

// Returns one rank's values that must be combined over ranks (OverRanks other than same and rank0), in the order of
// `each`, ready for an all-gather. `own` holds the figures of one rank, with lists of one entry.
std::vector<double> values_of_rank(const RunFigures& own);
// Combines the values_of_rank of all ranks, concatenated in rank order, into `run`. The first `workers` ranks train.
void combine_ranks(RunFigures& run, const std::vector<double>& by_rank, int workers);
// Combines repetitions of one run (at least one) by OverRuns: lists by their maximum, quartiles by their median.
RunFigures combine_runs(const std::vector<const RunFigures*>& runs);

// Returns all figures as a Markdown table: name, unit, how ranks, steps and repetitions are combined, meaning.
std::string figures_markdown();

// Returns the largest known entry; unknown if there is none.
double largest(const std::vector<double>& values);
double median(std::vector<double> values);  // over the known values; unknown if there are none

}  // namespace echelon::inline report
