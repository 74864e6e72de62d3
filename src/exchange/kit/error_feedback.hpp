// SPDX-License-Identifier: Apache-2.0
// The common part of all senders of messages coded by exchange.codec, bucket by bucket: the steps that are coded, the
// keys of random draws, the residual of a lossy codec, and the record of a step. allreduce/gradient_codec, server/codec
// and asynchronous/codec differ in the values that they encode and in the receivers.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "config/schema.hpp"
#include "exchange/codec_tally.hpp"
#include "exchange/kit/residual.hpp"

namespace echelon::inline exchange {

class ErrorFeedback {
 public:
  // `buckets` are ranges of the arenas, `seed` is the run's. The parameters must outlive this object. `encoder` is a
  // device that encodes by itself and holds the residual; null: the residual is on the host.
  ErrorFeedback(const ExchangeConfig& config, const ParameterSet& parameters, std::vector<ArenaRange> buckets,
                std::uint64_t seed, Device* encoder = nullptr);

  bool on() const { return on_; }
  bool lossy() const { return lossy_; }
  // Without exchange.error_feedback residuals are dropped before the next step.
  bool drops() const { return lossy_ && !feeds_back_; }
  std::int64_t warmup_steps() const { return warmup_steps_; }
  const std::vector<ArenaRange>& buckets() const { return buckets_; }
  const ArenaRange& bucket(std::size_t b) const { return buckets_[b]; }

  // Bucket b is sent next in this step of the run, coded unless the step is before exchange.codec_warmup_steps.
  void begin_step(std::size_t b, std::int64_t step) { step_[b] = step; }
  std::int64_t step_of(std::size_t b) const { return step_[b]; }
  bool codes(std::size_t b) const { return on_ && step_[b] >= warmup_steps_; }
  // The key of a rank's random draws for bucket b in a step; `way` differs between the two directions of a message.
  std::uint64_t key(std::size_t b, std::int64_t step, int rank, const char* way = "codec") const;
  // Returns `bytes`, a step's; NaN if uncoded steps come first.
  double formula_bytes(double bytes) const;

  Residual& residual() { return residual_; }
  // True once after a checkpoint was loaded: bucket b's residual came from it.
  bool take_loaded(std::size_t b) { return std::exchange(loaded_[b], 0) != 0; }
  // Visits "residual/<parameter>", one row per replica. A loaded residual is dropped if drops().
  void visit_state(StateVisitor& visitor, ReplicaPosition position);

  // The totals of the values that this rank encoded since the last record.
  CodecTally& tally() { return tally_; }
  CodecRecord record() { return tally_.take(lossy_); }

 private:
  bool on_, lossy_, feeds_back_;
  std::int64_t warmup_steps_;
  const ParameterSet& parameters_;
  std::vector<ArenaRange> buckets_;
  std::uint64_t seed_;
  std::vector<std::int64_t> step_;  // by bucket
  std::vector<char> loaded_;        // by bucket
  Residual residual_;
  CodecTally tally_;
};

}  // namespace echelon::inline exchange
