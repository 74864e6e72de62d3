// SPDX-License-Identifier: Apache-2.0
// Applies exchange.codec to a parameter server: messages are coded in both directions, each with error feedback.
//
// Push. A worker encodes its gradient plus its residual; the encoding error is the new residual. A server adds the
// decoded gradients to its own gradient of the part, which enters the sum exactly.
//
// Pull. A server keeps the exact weights of its part, the master weights, and applies the optimiser to them. All ranks
// train on a working copy, which has the same bits everywhere. A server sends the coded difference between master and
// working copy; every rank, including the server, adds the decoded message. What a message leaves out is part of the
// next difference, so that nothing is lost for good and the working copy follows the master. The error of coded weights
// would be a fraction of their size for ever; that of a coded change is a fraction of the change. Under strong
// compression (1 bit, top-k, threshold) the working copy lags behind the master, so that such runs need lower learning
// rates. `lossless` loses nothing and codes the weights themselves; its bits are those of a run without a codec.
//
// In the first exchange.codec_warmup_steps of a run no message is coded. Running statistics are never coded: they
// follow the coded values in a message (form.hpp). A single replica sends nothing: it applies its residual, including
// that of earlier replicas, and continues from the master weights.
//
// State: "residual/<parameter>" per replica (another number of replicas reads the sum, divided), "master/<parameter>"
// as a whole, thresholds per rank (another number of ranks starts anew). Host memory: four arenas per rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exchange/kit/error_feedback.hpp"
#include "exchange/server/form.hpp"
#include "exchange/server/partition.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class ServerCodec {
 public:
  // Throws ConfigError if codec and dtype cannot be combined.
  ServerCodec(const ExchangeConfig& config, const StrategyContext& context,
              const std::vector<PartitionedBucket>& buckets);

  bool on() const { return feedback_.on(); }
  // Valid for bucket b after `before_push`: whether its messages are coded by the forms below, and whether a pull
  // carries a change, found at `changes_at`, instead of the weights themselves.
  bool codes(std::size_t b) const { return feedback_.codes(b); }
  bool sends_changes(std::size_t b) const { return lossy() && ranks() > 1 && codes(b); }
  void* changes_at(std::int64_t elem) { return changes_.data() + elem; }

  ServerForm* push_form(std::size_t b) const { return forms_[b].push.get(); }
  ServerForm* pull_form(std::size_t b) const { return forms_[b].pull.get(); }
  // The bytes that all ranks together send in a step; NaN if they depend on the values or on the step.
  double formula_bytes() const { return formula_bytes_; }

  // Called for bucket b in this order: before its gradient is fetched for the push; before and after the server's
  // update of its own part, for which the arena's weights hold the master; after the pull.
  void before_push(std::size_t b, std::int64_t step);
  void before_update(std::size_t b);
  void after_update(std::size_t b);
  void finish(std::size_t b);

  // The master weights in arena order, of which this server's own part is current; null if there are none.
  float* master() { return ranks() > 1 && master_begun_ ? master_.data() : nullptr; }
  // The record of this rank for the buckets that finished since the last call.
  CodecRecord record() { return feedback_.record(); }
  void visit_state(StateVisitor& visitor);

 private:
  struct Forms {
    std::unique_ptr<ServerForm> push, pull;
  };

  bool lossy() const { return feedback_.lossy(); }
  int ranks() const { return context_.engine.size(); }
  bool works() const { return context_.engine.rank() < workers_; }
  std::unique_ptr<ServerForm> make_form(const ExchangeConfig& config, ArenaRange bucket, const Parts& parts, bool push);
  std::vector<ElemRange> statistics_of(ArenaRange bucket) const;
  void begin_master();
  void follow(std::size_t b);
  template <class Do>
  void each_statistic(std::size_t b, ArenaRange range, const Do& act) const;
  void read(float* to, ArenaRange range) const;  // weights in device memory
  void write(const float* from, ArenaRange range) const;

  StrategyContext context_;
  int workers_;  // number of workers, which are the first ranks; the others only serve
  ErrorFeedback feedback_;
  std::vector<ArenaRange> own_;
  std::vector<Forms> forms_;
  // Arrays of the arena's size; empty without a lossy codec. working_ holds the working weights during an update and a
  // pull.
  std::vector<float> master_, changes_, working_;
  bool master_begun_ = false;
  std::size_t pending_masters_ = 0;  // one replica: buckets whose loaded master weights are not yet applied
  double formula_bytes_ = 0;
};

}  // namespace echelon::inline exchange
