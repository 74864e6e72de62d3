// The figures of a step, an epoch and a run, each described once.
//
//   metrics.jsonl   a StepFigures a step, an EpochFigures an epoch
//   summary.json    the RunFigures of an attempt
//
// `each(figures, visit)` (figures_list.hpp) calls visit(Figure, member) for every member, in the order of the file:
// training fills the structs; files, sums over ranks, rows of reports and `echelon report --figures` follow from the
// list. To add a figure: a member, its line in `each`, and the code that fills it. Meanings and units are in that list
// alone.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace echelon::inline report {

// A figure that was not measured; null in files.
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// How the values of several ranks are combined: equal on all; sum; mean over the ranks that train; maximum; a list by
// rank; the value of rank 0.
enum class OverRanks : std::uint8_t { same, sum, mean, largest, list, rank0 };
// How the values of several steps are combined: there is one value; sum over the attempt; mean; median and quartiles
// without the first step; the newest value.
enum class OverSteps : std::uint8_t { none, sum, mean, quartiles, newest };
// How repetitions of a run are combined to a row of a report: the value of the first; median; maximum; sum.
enum class OverRuns : std::uint8_t { first, median, largest, sum };
// How a file represents an unknown figure: as null, or without the field.
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
// Of values in any order, by linear interpolation between order statistics (quantile q at index q (n-1)); zeros for no
// values. O(n log n).
Quartiles quartiles_of(std::vector<double> values);

// Where the time of a step, or of several, went. The parts and `other_s` add up to `total_s`.
struct StepTimes {
  double total_s = 0;
  double data_wait_s = 0;  // waiting for the loader and copying to the device
  double forward_s = 0;
  double backward_s = 0;
  double split_s = 0;     // waiting for the other ranks of the same replica
  double exchange_s = 0;  // compute thread blocked, the step's control sum included
  double optimiser_s = 0;
  double evaluation_s = 0;
  double checkpoint_s = 0;  // the wait for the exchange's end included
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
// Parts that most runs have none of: tables leave them out where they are zero.
bool is_seldom(std::size_t part);
StepTimes& operator+=(StepTimes& sum, const StepTimes& more);
// By part in percent, rounded to tenths that sum to exactly 100 (largest-remainder method); zeros where nothing was
// measured.
using TimePercent = std::array<double, kTimeParts>;
TimePercent time_percent(const StepTimes& times);
// Shares of a whole in the same way.
std::vector<double> percent_parts(const std::vector<double>& parts);

// data x pipeline x tensor x space ranks.
struct MeshShape {
  int data = 1, pipeline = 1, tensor = 1, space = 1;
  int parts() const { return pipeline * tensor * space; }
};

// By rank.
struct RankTimes {
  std::vector<double> compute, exposed, exchange;  // s
  std::vector<double> wire_bytes;
};

// Figures of a codec; unknown where nothing was encoded.
struct CodecFigures {
  double bytes_before = kUnknown;  // of all values that were encoded
  double bytes_after = kUnknown;   // of their messages
  double seconds = kUnknown;
  double residual_norm = kUnknown, density = kUnknown, tau = kUnknown;  // of lossy ones
};

// Of asynchronous updates, by worker.
struct StalenessFigures {
  std::vector<double> applied, dropped;  // parts of updates
  std::vector<double> mean, largest;     // versions, of those that were applied
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
  double test_perplexity = kUnknown, test_top5_accuracy = kUnknown, test_macro_f1 = kUnknown;
  std::vector<double> test_recall = {}, test_precision = {};
  double train_eval_loss = kUnknown, train_accuracy = kUnknown;
  double seconds = kUnknown;
};

struct CheckpointFigures {
  std::int64_t step = 0;
  double bytes = 0, blocked_s = 0, write_s = 0;
};

struct RunFigures {
  std::string name, config_hash, state;
  int ranks = 0;  // that train
  MeshShape mesh;
  int servers = 0, hosts = 0;
  std::string device, device_text;
  bool paced = false;
  std::string shaped;  // "1 Gbit/s, 50 us, 2 ranks a host"; "": messages passed as they came
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
         halo_bytes_per_step = kUnknown;
  double allocations_per_step = kUnknown, allocated_bytes_per_step = kUnknown;
  double exchange_exposed_s = kUnknown, exchange_hidden_s = kUnknown, codec_s = kUnknown;
  double arrival_skew_s = kUnknown, skew_wait_s = kUnknown;
  std::vector<std::string> slow_ranks;
  double bytes_read = kUnknown, bytes_used = kUnknown;
  double samples_never = kUnknown, samples_once = kUnknown, samples_repeated = kUnknown;
  double drift = kUnknown, noise_scale = kUnknown, train_eval_loss = kUnknown, train_accuracy = kUnknown;
  double train_loss = kUnknown, loss_oscillation = kUnknown, test_loss = kUnknown, test_accuracy = kUnknown;
  double test_top5_accuracy = kUnknown, test_macro_f1 = kUnknown;
  std::vector<double> test_recall, test_precision;
  std::vector<double> card_peak, card_mean;
  std::vector<double> peak_rss_mb, device_peak_mb, activations_spared_mb;
  double cpu_s = kUnknown;  // over all ranks
  double start_to_first_step_s = kUnknown, warmup_steps = kUnknown, warmup_s = kUnknown;
  std::string weights_checksum;
  std::optional<Quartiles> tokens_per_s;
  std::string loss_unit;
  double test_perplexity = kUnknown;
  std::optional<CodecFigures> coded;
  // Whether ops computed, then slept (device.pace_ms).
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
  // Whether a step is one of all ranks, so that its time says something of the run.
  bool steps_together() const { return !std::isnan(samples_per_s.p25); }
};

// The values of one rank that must be combined over ranks (OverRanks other than same and rank0), in the order of
// `each`, so that they can be all-gathered. `own`: the figures of one rank, lists with one entry.
std::vector<double> values_of_rank(const RunFigures& own);
// Combines the values_of_rank of all ranks, concatenated by rank, into `run`; the first `workers` ranks train.
void combine_ranks(RunFigures& run, const std::vector<double>& by_rank, int workers);
// Repetitions of one run (at least one) combined by OverRuns; of lists their maximum, of quartiles their median.
RunFigures combine_runs(const std::vector<const RunFigures*>& runs);

// All figures as a Markdown table: name, unit, how ranks, steps and repetitions are combined, meaning.
std::string figures_markdown();

// Largest known entry; unknown where there is none.
double largest(const std::vector<double>& values);
double median(std::vector<double> values);  // of those that are known; unknown where none is

}  // namespace echelon::inline report
