// What a run leaves behind, read back: one record an attempt folder (results/<name>/run-<hash>/01).
//
//   config.toml    the effective config: which runs belong together
//   summary.json   what was measured; written at the end, so an attempt that died has none
//   status.json    how it ended and why
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace echelon {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Quartiles {
  double median = kUnknown;
  double p25 = kUnknown;
  double p75 = kUnknown;
};

// Seconds over all timed steps, mean over ranks. `exchange` is what the compute thread waited: the exposed part;
// `split`, what it waited for other ranks of the same replica.
struct TimeSplit {
  double data = 0, forward = 0, backward = 0, split = 0, exchange = 0, optimizer = 0, hooks = 0, other = 0;
  double total = 0;
};

struct RunRecord {
  std::string folder;
  std::string group;         // equal for runs that differ in ranks, batch, seed, name and restart-neutral keys alone
  std::string experiment;    // equal for runs that should learn the same: in ranks, seed and exchange they may differ
  std::string state;         // running | finished | stopped | failed
  std::string reason;        // of status.json
  bool has_summary = false;  // else nothing below is known

  std::string name, config_hash, device, device_text, dtype, model, strategy, algorithm, scaling;
  std::string codec = "none", codec_text = "none";  // "threshold (density 0.001, after 188 steps)"
  bool paced = false;
  int ranks = 0, hosts = 0, threads = 0;  // ranks that train
  int servers = 0;                        // on ranks of their own
  std::int64_t parameters = 0;
  std::int64_t global_batch = 0, accumulation = 1;
  std::vector<std::int64_t> batch_per_replica;
  std::int64_t epochs = 0, steps = 0;  // of this attempt
  std::int64_t timed_steps = 0;        // that the quartiles are over

  Quartiles samples_per_s, step_s;
  TimeSplit time_split;
  double wire_bytes_per_step = kUnknown, formula_bytes_per_step = kUnknown, messages_per_step = kUnknown;
  double bytes_read = kUnknown, bytes_used = kUnknown;
  double train_loss = kUnknown, test_loss = kUnknown, test_accuracy = kUnknown;  // accuracy in [0, 1]
  double peak_rss_mb = kUnknown, device_peak_mb = kUnknown;                      // largest over ranks
  double start_to_first_step_s = kUnknown;

  std::string version, commit, mpi, job_id, command, started;
  std::vector<std::string> host_names, devices;
  std::int64_t seed = 0;
};

// Every attempt in and below the folders (attempts, runs or parents of runs), each once, in order of path. ConfigError
// for a folder that is not there or holds no attempt, DataError for a record that cannot be understood.
std::vector<RunRecord> read_runs(const std::vector<std::string>& folders);

// One attempt folder.
RunRecord read_run(const std::string& folder);

}  // namespace echelon
