// Runs put side by side: how much faster k ranks are, and where a step's time goes.
//
// Runs of one group (record.hpp) with the same global batch on different numbers of ranks are a strong study; with the
// same batch per replica, a weak one; a run may be in both. With S(k) the samples/s of k ranks and k0 the fewest ranks
// of the study:
//   speed-up(k) = S(k) / S(k0)        efficiency(k) = speed-up(k) * k0 / k
// Only finished attempts count. Attempts of one row are repetitions: its rate is the median of theirs and the spread
// their range; a single attempt's spread is the quartiles of its steps.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "report/record.hpp"

namespace echelon {

enum class StudyKind : std::uint8_t { strong, weak, single };

// Parts of a step's time, in percent, tenths; they sum to exactly 100.
inline constexpr std::array<const char*, 8> kTimeParts = {"data",     "forward",   "backward", "split",
                                                          "exchange", "optimizer", "hooks",    "other"};
using TimePercent = std::array<double, 8>;

struct Spread {
  double median = kUnknown, low = kUnknown, high = kUnknown;
};

struct ScalingRow {
  int ranks = 0, hosts = 0, threads = 0;
  int servers = 0;   // on ranks of their own, beside `ranks`
  int attempts = 0;  // repetitions that the row is made of
  std::string device;
  bool paced = false;
  std::string name;  // of single runs, which differ in more than their ranks
  std::int64_t global_batch = 0;
  std::string batch_per_replica;  // "32", or "16+48" where shares differ
  Spread samples_per_s, test_accuracy;
  double step_s = kUnknown;
  double speed_up = kUnknown, efficiency = kUnknown;
  bool has_split = false;
  TimePercent percent{};
  double wire_bytes_per_step = kUnknown, formula_bytes_per_step = kUnknown, messages_per_step = kUnknown;
  double train_loss = kUnknown;
  double peak_rss_mb = kUnknown, device_peak_mb = kUnknown;
  double start_to_first_step_s = kUnknown;
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
  std::vector<Study> studies;
  std::vector<LeftOut> left_out;  // attempts that were found but not counted
  std::vector<RunRecord> counted;
  std::vector<std::string> warnings;  // of codecs that cost accuracy
};

ScalingReport make_scaling(const std::vector<RunRecord>& runs);

// Shares of the parts, rounded to tenths so that they sum to 100 (largest remainders). Time that no part claims is
// `other`. All zero where nothing was measured.
TimePercent time_percent(const TimeSplit& split);

}  // namespace echelon
