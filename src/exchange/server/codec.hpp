// What exchange.codec asks of a parameter server: coded messages both ways, with error feedback both ways.
//
// Push. A worker encodes its gradient plus its residual (kept on each worker); the encoding error is the new residual.
// A server adds what it decodes to its own gradient of the part, which enters the sum exactly.
//
// Pull. Servers keep the exact weights of their parts, the master weights, and take their steps on them. All ranks
// train on a working copy with the same bits everywhere: a server sends the coded difference of its master from the
// working copy, and every rank, the server too, adds the decoded message. What a message leaves out is still in the
// next difference, so nothing is lost for good: the working copy follows the master. Coded weights themselves would be
// off by a part of their size for ever, a coded change only by a part of itself.
// The working copy lags behind the master under strong compression (1 bit, top-k, threshold), so that such runs need
// lower learning rates. `lossless` loses nothing and codes the weights themselves: the bits of the run without a codec.
//
// In the first exchange.codec_warmup_steps of a run all travels as it is. Running statistics travel beside what is
// coded, as they are (form.hpp). One replica sends nothing: it applies all residuals of itself and of its predecessors,
// and continues from the master weights.
//
// State: "residual/<parameter>" by replica (summed for another number of them), "master/<parameter>" whole, thresholds
// by rank (new ones for another number of ranks). Host memory of four arenas a rank.
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
  // ConfigError where codec and dtype do not go together.
  ServerCodec(const ExchangeConfig& config, const StrategyContext& context,
              const std::vector<PartitionedBucket>& buckets);

  bool on() const { return feedback_.on(); }
  // Of bucket b, once `before_push` was told its step: messages are coded, by the forms below; and what is
  // pulled is a change, found at `changes_at`, else the weights themselves.
  bool codes(std::size_t b) const { return feedback_.codes(b); }
  bool sends_changes(std::size_t b) const { return lossy() && ranks() > 1 && codes(b); }
  void* changes_at(std::int64_t elem) { return changes_.data() + elem; }

  ServerForm* push_form(std::size_t b) const { return forms_[b].push.get(); }
  ServerForm* pull_form(std::size_t b) const { return forms_[b].pull.get(); }
  // Bytes that all ranks together send in a step; NaN where that depends on the values or on the step.
  double formula_bytes() const { return formula_bytes_; }

  // Of bucket b, in this order: before it is fetched for the push; around the server's step on its own part, which the
  // arena's weights are lent for; once the pull is done.
  void before_push(std::size_t b, std::int64_t step);
  void before_update(std::size_t b);
  void after_update(std::size_t b);
  void finish(std::size_t b);

  // Of the arena, each server's part up to date; null where there are none.
  float* master() { return ranks() > 1 && master_begun_ ? master_.data() : nullptr; }
  // Of this rank and the buckets that are finished since the last call.
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
  void read(float* to, ArenaRange range) const;  // weights of the device
  void write(const float* from, ArenaRange range) const;

  StrategyContext context_;
  int workers_;  // the first ranks; the others are servers alone
  ErrorFeedback feedback_;
  std::vector<ArenaRange> own_;
  std::vector<Forms> forms_;
  // Of the arena; empty where nothing is lost. The last: working weights, around an update and a pull.
  std::vector<float> master_, changes_, working_;
  bool master_begun_ = false;
  std::size_t pending_masters_ = 0;  // one replica: buckets whose master weights a checkpoint brought
  double formula_bytes_ = 0;
};

}  // namespace echelon::inline exchange
