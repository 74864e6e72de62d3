// SPDX-License-Identifier: Apache-2.0
// Decentralised exchange of compressed updates (Strom: Scalable distributed DNN training using commodity GPU cloud
// computing, Interspeech 2015). There is no server: each replica sends every other one the few entries of its
// accumulated update that exceed a threshold, and all replicas apply them.
//
//   u_i  = s_i (f(w, g_i) - w)     f the optimiser's step by the gradient of replica i's samples, s_i their share of
//                                  the step's: the learning rate is that of the global batch. States stay local
//   r_i += u_i;  m_i = entries of r_i with |r| >= tau, as +tau or -tau;  r_i -= m_i
//   w   += m_0 + m_1 + ..          own entries are applied as they were sent
//
// Synchronous rounds: m_0, m_1, .. are those of one step, added in the order of ranks, so that all replicas hold the
// same bits. Asynchronous rounds: a replica adds its own message at once and those of the others before its next step,
// in the order of arrival. Without a free slot (protocol.hpp) its update stays in the residual and is counted as held.
// At a meeting all messages are delivered; weights are then equal up to rounding, and rank 0's are sent to all, so that
// they become equal bit for bit.
//
// In the first warmup_steps steps a replica sends whole updates, which leaves no residual. Running statistics are not
// in the messages: synchronous rounds average them, weighted by samples and uncoded; asynchronous rounds do so at
// meetings.
//
// Norms (clip_norm, LARS, LAMB) are those of own gradients. An update takes k (k-1) messages per bucket, whose bytes
// depend on the values. Host memory: 2 G (weights before the step, residual), slots of messages (protocol.hpp) and, for
// devices with their own memory, G more. A single replica codes as well, but sends nothing.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"
#include "comm/collective/algorithms.hpp"
#include "exchange/allreduce/exact_part.hpp"
#include "exchange/averaging/arena_pass.hpp"
#include "exchange/buckets.hpp"
#include "exchange/codec_tally.hpp"
#include "exchange/entry.hpp"
#include "exchange/facets.hpp"
#include "exchange/kit/residual.hpp"
#include "exchange/living.hpp"
#include "exchange/local_scaling.hpp"
#include "exchange/step_account.hpp"
#include "exchange/strom/coder.hpp"
#include "exchange/strom/exchange.hpp"
#include "exchange/strom/message.hpp"

namespace echelon::inline exchange {
namespace {

class Strom final : public Strategy, public AsynchronousReplicas, public Rescues, public HoldsUpdates {
 public:
  Strom(const ExchangeConfig& config, const StrategyContext& context)
      : keys_(config.strom),
        context_(context),
        account_(context.optimiser),
        pass_(context.arenas),
        gradient_({0, context.arenas.elems()}),
        runs_(weights_in(context.arenas.parameters(), {0, context.arenas.elems()})),
        weights_(bytes_of(context.arenas.elems())),
        residual_(context.arenas.elems(), context.arenas.dtype()),
        statistics_(context, "naive", {.rank = context.engine.rank(), .ranks = replicas()}, context.first_channel,
                    replicas() > 1) {
    context.arenas.track_rows(false);
    if (!context.arenas.device().on_host()) changed_ = context.arenas.device().allocate_host(weights_.size());
    const ParameterSet& parameters = context.arenas.parameters();
    StromTraffic traffic{.asynchronous = asynchronous(),
                         .ring = keys_.topology == StromTopology::ring,
                         .rooms = {},
                         .first_tag = context.first_channel + 2};
    for (const ArenaRange& range : make_buckets(parameters, size_of(dtype()), config.bucket_mb * 1024 * 1024)) {
      buckets_.emplace_back(StromCoder(format(), range, weights_in(parameters, range)));
      traffic.rooms.push_back(strom_room(range.elems(), dtype(), keys_.warmup_steps > 0));
    }
    tally_.emplace(buckets_.size());
    tau_.resize(buckets_.size());
    if (alone())
      alone_.resize(traffic.rooms.empty() ? 0 : *std::max_element(traffic.rooms.begin(), traffic.rooms.end()));
    else
      exchange_.emplace(context.engine, std::move(traffic),
                        [this](std::size_t b, StromMessage message) { add(b, message); });
  }

  Progress progress() const override {
    return {.meets = asynchronous() ? Progress::Meets::when_called : Progress::Meets::every_step};
  }
  double divisor(const StepInfo& info) const override { return info.local_weight > 0 ? info.local_weight : 1; }

  void begin_step(const StepInfo& info) override {
    begin();
    leave_meeting();
    if (asynchronous() && !alone() && apply_arrived()) store_weights();
    gradient_.reset();
    account_.begin_step(info);
  }
  void wait_parameters(ArenaRange) override {}
  void gradient_ready(ArenaRange range) override { gradient_.add(range, account_.info().step); }

  StepOutcome end_step() override {
    const StepInfo& info = account_.info();
    ECHELON_CHECK(gradient_.complete(), "gradients missing at the end of step {}", info.step);
    if (info.local_weight > 0) apply_all(context_.optimiser, context_.arenas, account_.outcome());
    if (!asynchronous()) begin_statistics(info.weight > 0 ? info.local_weight / info.weight : 1.0 / replicas());
    send_updates();
    if (!asynchronous()) {
      for (Bucket& bucket : buckets_) finish_round(bucket);
      end_statistics();
    }
    store_weights();
    if (!alone()) account_.note_sent(exchange_->take_sent());
    StepOutcome outcome = account_.take();
    outcome.codec = tally_->take(true);
    return outcome;
  }

  void come_to_meeting() override {
    if (!asynchronous() || alone()) return;
    begin();
    leave_meeting();
    exchange_->come_to_meeting();
  }
  void drain() override {
    const StepAccount::ExcludedTime apart(account_);
    leave_meeting();
    context_.arenas.device().synchronize();
  }

  // Asynchronous: averages the weights of the replicas; a message that has not reached all of them counts with the
  // share of those that it has reached. Synchronous: takes for each bucket the weights after the last round that any
  // replica has completed; a message of a later round goes back to its sender's residual.
  bool rescue(Group& living, const std::vector<int>&) override {
    if (!std::exchange(begun_, true)) fetch(weights_.data());
    store_weights();
    average_weights(living, context_.arenas);
    for (std::size_t b = 0; b < buckets_.size() && !asynchronous(); ++b) take_complete_round(living, b);
    asynchronous() ? fetch(weights_.data()) : store_weights();
    return true;
  }
  void visit_state(StateVisitor& visitor) override {
    const ReplicaPosition position{context_.engine.rank(), replicas()};
    residual_.visit(visitor, "strategy/residual", context_.arenas.parameters(), position);
    for (std::size_t b = 0; b < buckets_.size(); ++b) tau_[b] = buckets_[b].coder.tau();
    visit_by_replica(visitor, "strategy_tau" + context_.part, tau_, position);
    pass_.visit_local_states(visitor, context_.optimiser, position);
    visit_local_scaling(visitor, context_.optimiser.scaling(), position, context_.part);
    for (std::size_t b = 0; b < buckets_.size() && visitor.loading(); ++b) buckets_[b].coder.set_tau(tau_[b]);
    begun_ = begun_ && !visitor.loading();
  }
  WireCounters wire() const override { return account_.wire(); }
  double updates_held() const override {
    return asynchronous() && !alone() ? static_cast<double>(held_) : std::numeric_limits<double>::quiet_NaN();
  }
  double formula_bytes_per_step() const override { return alone() ? 0 : std::numeric_limits<double>::quiet_NaN(); }
  std::string describe() const override {
    std::string text = fmt::format(
        "decentralised exchange of entries beyond {} (Strom), {} in {}, {} rounds, {} indices",
        keys_.tau > 0 ? fmt::format("tau = {}", keys_.tau) : fmt::format("a tau of density {}", keys_.density),
        bytes_text(static_cast<double>(weights_.size())), counted(static_cast<std::int64_t>(buckets_.size()), "bucket"),
        asynchronous() ? "asynchronous" : "synchronous", keys_.indices == StromIndices::raw ? "raw" : "entropy-coded");
    text += alone() ? "; one replica: nothing is sent"
                    : fmt::format(", {} over {} replicas",
                                  keys_.topology == StromTopology::ring ? "a ring" : "all pairs", replicas());
    if (keys_.warmup_steps > 0) text += fmt::format("; whole updates before step {}", count_text(keys_.warmup_steps));
    return text;
  }

 private:
  struct Bucket {
    explicit Bucket(StromCoder with) : coder(std::move(with)) {}
    StromCoder coder;
    StromMessage own;         // message of this step; empty: none, or its round is complete
    std::int64_t rounds = 0;  // number of complete rounds
  };

  int replicas() const { return context_.engine.size(); }
  bool alone() const { return replicas() == 1; }
  bool asynchronous() const { return keys_.rounds == StromRounds::asynchronous; }
  bool entropy() const { return keys_.indices == StromIndices::entropy; }
  DType dtype() const { return context_.arenas.dtype(); }
  StromFormat format() const {
    return {.dtype = dtype(), .entropy = entropy(), .tau = keys_.tau, .density = keys_.density};
  }
  std::size_t bytes_of(std::int64_t elems) const { return static_cast<std::size_t>(elems) * size_of(dtype()); }

  void begin() {
    if (!begun_) fetch(weights_.data());
    begun_ = true;
    if (!alone()) exchange_->attach();
  }

  void fetch(void* host) const {
    context_.arenas.device().to_host(host, context_.arenas.weights_at(0), weights_.size());
  }
  // Returns host memory with the weights of the arena.
  const void* changed() {
    if (!changed_.data()) {
      context_.arenas.device().synchronize();
      return context_.arenas.weights_at(0);
    }
    fetch(changed_.data());
    return changed_.data();
  }
  // Copies the common weights to the arena, except running statistics.
  void store_weights() {
    const SpanTimer timer(account_.outcome().optimiser_s, SpanKind::optimiser);
    for (const ArenaRange& range : runs_)
      context_.arenas.device().to_device(context_.arenas.weights_at(range.begin),
                                         weights_.data() + bytes_of(range.begin), bytes_of(range.elems()));
    context_.arenas.touch();
  }

  void add(std::size_t b, StromMessage message) {
    const ArenaRange range = buckets_[b].coder.bucket();
    add_message(message, entropy(), weights_.data() + bytes_of(range.begin), dtype(), range.elems());
  }

  void send_updates() {
    const StepInfo& info = account_.info();
    const SpanTimer timer(account_.outcome().optimiser_s, SpanKind::optimiser);
    const StromCoder::Update update{.changed = changed(),
                                    .weights = weights_.data(),
                                    .residual = residual_.at(0),
                                    .scale = info.weight > 0 ? info.local_weight / info.weight : 0};
    for (std::size_t b = 0; b < buckets_.size(); ++b) send_update(b, update, info.step < keys_.warmup_steps);
  }

  void send_update(std::size_t b, const StromCoder::Update& update, bool dense) {
    Bucket& bucket = buckets_[b];
    StromCoder& coder = bucket.coder;
    bucket.own = {};
    std::size_t bytes = 0;
    const double start_s = now_s();
    if (alone() || exchange_->has_slot(b)) {
      std::byte* room = alone() ? alone_.data() : exchange_->room(b);
      bytes = dense ? coder.encode_dense(update, room) : coder.encode(update, room);
      if (asynchronous() && !dense && coder.entries() == 0) bytes = 0;  // there is nothing to send
      bucket.own = {room, bytes};
    } else {
      coder.hold(update);
      ++held_;
    }
    const auto values = static_cast<double>(coder.bucket().elems());
    tally_->add({.bytes_before = values * static_cast<double>(size_of(dtype())),
                 .bytes_after = static_cast<double>(bytes),
                 .values = values,
                 .density = values * coder.density(),
                 .tau = values * coder.sent_tau(),
                 .seconds = account_.update_was_exchange(start_s)});
    tally_->set_residual(b, coder.residual_squares());
    if (bytes == 0) return;
    if (asynchronous() || alone()) add(b, bucket.own);
    if (!alone()) exchange_->send(b, bytes);
  }

  void finish_round(Bucket& bucket) {
    if (!alone()) exchange_->finish_round(static_cast<std::size_t>(&bucket - buckets_.data()), bucket.own, account_);
    bucket.own = {};
    ++bucket.rounds;
  }

  void take_complete_round(Group& living, std::size_t b) {
    Bucket& bucket = buckets_[b];
    const std::vector<double> rounds = living.gather(static_cast<double>(bucket.rounds));
    const auto newest = std::max_element(rounds.begin(), rounds.end());
    const ArenaRange range = bucket.coder.bucket();
    living.broadcast(weights_.data() + bytes_of(range.begin), bytes_of(range.elems()),
                     static_cast<int>(newest - rounds.begin()));
    if (static_cast<double>(bucket.rounds) == *newest && !bucket.own.empty())
      add_message(bucket.own, entropy(), residual_.at(range.begin), dtype(), range.elems());
    bucket.own = {};
    bucket.rounds = static_cast<std::int64_t>(*newest);
  }

  bool apply_arrived() {
    const SpanTimer timer(account_.outcome().optimiser_s, SpanKind::optimiser);
    return exchange_->apply_arrived();
  }

  // Waits until all have come and their messages are delivered; then all ranks take rank 0's weights.
  void leave_meeting() {
    if (alone() || !exchange_->leave_meeting()) return;
    Job job;
    job.plan = make_broadcast(context_.engine.rank(), replicas(), 0, context_.arenas.elems());
    job.data = weights_.data();
    job.dtype = dtype();
    job.channel = context_.first_channel + 1;
    const Ticket sent = context_.engine.submit(std::move(job));
    begin_statistics(1.0 / replicas());
    sent.wait();
    account_.note_sent(sent.wire());
    end_statistics();
    store_weights();
    account_.note_sent(exchange_->take_sent());
  }

  template <class Body>
  void each_statistic(const Body& body) {
    for (const Parameter& p : context_.arenas.parameters().all())
      if (p.kind == ParameterKind::statistic)
        body(context_.arenas.weights_at(p.begin), context_.arenas.gradients_at(p.begin),
             static_cast<std::size_t>(p.elems()));
  }
  // Averages the statistics over the replicas; the gradient arena is the buffer.
  void begin_statistics(double share) {
    if (alone()) return;
    VectorOps& ops = context_.arenas.device().vector_ops();
    each_statistic([&](void* weights, void* buffer, std::size_t n) {
      ops.copy(dtype(), buffer, weights, n);
      ops.scale(dtype(), buffer, share, n);
    });
    statistics_.take({0, context_.arenas.elems()});
  }
  void end_statistics() {
    if (alone()) return;
    {
      const SpanTimer timer(account_.outcome().exchange_wait_s, SpanKind::exchange_wait);
      account_.note_sent(statistics_.put({0, context_.arenas.elems()}, nullptr));
    }
    each_statistic([&](void* weights, void* buffer, std::size_t n) {
      context_.arenas.device().vector_ops().copy(dtype(), weights, buffer, n);
    });
    context_.arenas.touch();
  }

  StromKeys keys_;
  StrategyContext context_;
  StepAccount account_;
  ArenaPass pass_;
  ReadyCount gradient_;             // over the whole arena
  std::vector<ArenaRange> runs_;    // runs of parameters that are not running statistics
  std::vector<std::byte> weights_;  // common weights of the whole arena, without own updates that are not sent
  Residual residual_;
  Memory changed_;                // host copy of the arena; empty on host devices
  std::vector<std::byte> alone_;  // message buffer of a single replica
  ExactPart statistics_;
  std::vector<Bucket> buckets_;  // from the end of the arena on
  std::vector<double> tau_;      // by bucket
  std::optional<CodecTally> tally_;
  bool begun_ = false;  // `weights_` was read from the arena
  std::int64_t held_ = 0;
  std::optional<StromExchange> exchange_;  // must be destroyed first; empty with one replica
};

}  // namespace

std::unique_ptr<Strategy> make_strom(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<Strom>(config, context);
}

}  // namespace echelon::inline exchange
