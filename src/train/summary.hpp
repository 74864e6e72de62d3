// What is known at the end of an attempt: collected over the ranks, written as summary.json (the record that reports
// read; its format is in train/README.md), and told in a few lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"
#include "exchange/strategy.hpp"
#include "train/hooks/statistics.hpp"
#include "train/launch.hpp"
#include "train/place.hpp"
#include "train/run_folder.hpp"
#include "train/run_plan.hpp"
#include "train/step.hpp"

namespace echelon {

struct SummaryParts {
  const Config& config;
  const RunPlan& plan;
  Place& place;
  const Provenance& provenance;
  const RunFolder& folder;
  const Seat& seat;
  const Device& device;
  const Arenas& arenas;
  const Strategy& strategy;
  const StatisticsHook& statistics;
  const Stepper& runner;
  const Courier& courier;
  int threads = 1;
};

struct Summary {
  std::string state;  // finished | stopped
  std::string device, device_text, model;
  std::int64_t parameters = 0;
  std::int64_t step = 0;                  // updates of the whole run
  int ranks = 1, hosts = 1, threads = 1;  // ranks that train
  int servers = 0;                        // on ranks of their own
  bool paced = false;
  Spread samples_per_s, step_s;
  Spread tokens_per_s;  // zeros where labels are one a sample
  std::int64_t measured_steps = 0;
  StepTimes times;  // sums over the attempt's steps, mean over ranks
  double wire_bytes_per_step = 0, formula_bytes_per_step = 0, messages_per_step = 0, library_bytes_per_step = 0;
  double split_bytes_per_step = 0;      // between ranks of one replica, evaluation included
  double halo_bytes_per_step = 0;       // of it, rows for neighbours
  double exposed_s = 0, hidden_s = 0;   // of the exchange, over the attempt, mean over ranks
  double skew_s = 0;                    // how far apart the ranks came to it, mean over steps
  std::vector<std::string> slow_ranks;  // told in words
  CodecRecord codec;  // of rank 0; bytes are sums over the attempt's steps, the residual is the newest
  double bytes_read = 0, bytes_used = 0;
  EpochRecord epoch;
  double loss = 0;                                  // of the last step
  std::vector<double> peak_rss_mb, device_peak_mb;  // by rank
  std::vector<double> spared_mb;                    // likewise: activations that gpipe would hold, 1f1b does not
  double start_to_first_step_s = 0;                 // of the slowest rank
  std::string weights_checksum;
};

// All ranks call it. `peers`: workers, or servers on ranks of their own; times are theirs, bytes those of all.
Summary collect_summary(const SummaryParts& parts, Group& world, Group& peers, const std::string& state,
                        std::int64_t step);
void write_summary(const Summary& summary, const SummaryParts& parts);
// A few lines for people.
std::string summary_text(const Summary& summary, const SummaryParts& parts, const std::string& checkpoint);

// Parts of a whole in tenths of a percent that sum to 100.0 exactly (largest remainders); zeros where all are zero.
std::vector<double> percent_parts(const std::vector<double>& parts);

}  // namespace echelon
