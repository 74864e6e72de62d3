// The step of one replica without any exchange: means of its phases, and how it varies. Measured, from the rows of a
// run's metrics.jsonl without the first; or described (description.hpp):
//
//   --step samples=64,forward_ms=60,backward_ms=120,optimizer_ms=4,jitter=0.03        or a file with [step]
//
//   samples           that the replica trains in the step; default: the config's batch.global
//   data_ms           waiting for input; forward_ms, backward_ms; optimizer_ms; other_ms
//   samples_per_s     instead of the four: a third of the step is forward, two thirds are backward
//   jitter, spread    variation.hpp; default 0
//   encode_gb_per_s   at which a rank's codec works, GB/s of values before coding; default 4.5 (results/codecs.md), or
//                     what a given run with the codec measured
//   decode_gb_per_s   default 6, or likewise
#pragma once

#include <map>
#include <optional>
#include <string>

#include "planner/variation.hpp"
#include "report/record.hpp"

namespace echelon::inline planner {

// Bytes of values before coding, of a rank.
struct CodecSpeed {
  double encode_bytes_per_s = 4.5e9, decode_bytes_per_s = 6e9;
};

struct StepModel {
  std::string source;
  double samples = 1;
  double data_s = 0, forward_s = 0, backward_s = 0, optimiser_s = 0, other_s = 0;
  Variation variation;
  CodecSpeed codec;                                   // of those that were not measured
  std::map<std::string, CodecSpeed> measured_codecs;  // by exchange.codec
  bool measured = false;

  const CodecSpeed& codec_speed(const std::string& name) const {
    const auto found = measured_codecs.find(name);
    return found == measured_codecs.end() ? codec : found->second;
  }

  double total_s() const { return data_s + forward_s + backward_s + optimiser_s + other_s; }
  // Of another number of samples: phases but the optimiser's grow in proportion.
  StepModel of_samples(double other) const;
};

// ConfigError as Description; where neither forward_ms and backward_ms nor samples_per_s is there.
StepModel described_step(const std::string& argument, double samples);
// ConfigError for a run whose ranks take no steps of their own to measure, DataError for rows that cannot be read.
StepModel measured_step(const RunRecord& run);
// What a run's codec reached, both ways alike: values encoded and decoded by a rank over the seconds of both. Nothing
// where it coded nothing.
std::optional<CodecSpeed> measured_codec(const RunRecord& run);
// Seconds in which all replicas together train the samples of one step: the global batch over the rate of the run,
// which every strategy has in the same sense.
double measured_period_s(const RunRecord& run);

}  // namespace echelon::inline planner
