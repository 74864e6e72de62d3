// SPDX-License-Identifier: Apache-2.0
// The step of one replica without any exchange: the means of its phases, and its variation. It is measured, from the
// rows of a run's metrics.jsonl except the first, or described (description.hpp):
//
//   --step samples=64,forward_ms=60,backward_ms=120,optimizer_ms=4,jitter=0.03        or a file with [step]
//
//   samples           samples that the replica trains in the step; default: the config's batch.global
//   data_ms           waiting for input; forward_ms, backward_ms; optimizer_ms; other_ms
//   samples_per_s     instead of the times: a third of the step is forward, two thirds are backward
//   jitter, spread    variation.hpp; default 0
//   overlap           share of the exchange beside compute that overlap hides, 0 to 1; default: 1, or the share that a
//                     given run measured (measured_overlap)
//   encode_gb_per_s   rate at which a rank encodes, in GB/s of values before coding; default: the rate that a given run
//                     measured with the codec, otherwise 4.5 (results/codecs.md)
//   decode_gb_per_s   rate at which a rank decodes; default: the measured rate, otherwise 6
#pragma once

#include <map>
#include <optional>
#include <string>

#include "planner/variation.hpp"
#include "report/record.hpp"

namespace echelon::inline planner {

// Rates of one rank, in bytes of values before coding.
struct CodecSpeed {
  double encode_bytes_per_s = 4.5e9, decode_bytes_per_s = 6e9;
};

struct StepModel {
  std::string source;
  double samples = 1;
  double data_s = 0, forward_s = 0, backward_s = 0, optimiser_s = 0, other_s = 0;
  Variation variation;
  double overlap = 1;                                 // less where compute and messages need the same cores
  CodecSpeed codec;                                   // for codecs that were not measured
  std::map<std::string, CodecSpeed> measured_codecs;  // by coding_of
  bool measured = false;

  const CodecSpeed& codec_speed(const std::string& name) const {
    const auto found = measured_codecs.find(name);
    return found == measured_codecs.end() ? codec : found->second;
  }

  double total_s() const { return data_s + forward_s + backward_s + optimiser_s + other_s; }
  // Returns the step for another number of samples: all phases except the optimiser's grow in proportion.
  StepModel of_samples(double other) const;
};

// Throws ConfigError as Description does, and if neither forward_ms and backward_ms nor samples_per_s is given.
StepModel described_step(const std::string& argument, double samples);
// Throws DataError if the rows cannot be read, are missing, or have steps of 0 s.
StepModel measured_step(const RunRecord& run);
// Returns what codes the messages of an exchange: the name of its codec, or of a strategy that always codes.
std::string coding_of(const ExchangeConfig& exchange);
// The rate of a run's codec: the values that a rank encoded and decoded over the seconds of both, the same rate for
// both; of a strategy that always codes, the values that it encoded over the seconds of both. Returns nothing if the
// run coded nothing.
std::optional<CodecSpeed> measured_codec(const RunRecord& run);
// Seconds in which all replicas together train the samples of one step: the global batch over the rate of the run. This
// definition holds for every strategy.
double measured_period_s(const RunRecord& run);

}  // namespace echelon::inline planner
