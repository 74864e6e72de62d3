// Asynchronous parameter server (Downpour SGD: Dean et al., NIPS 2012), its servers inside the workers
// (exchange.servers of them): each worker takes optimiser steps of its own, sends the changes of its weights to the
// servers bucket by bucket while back-propagation goes on, and gets the servers' weights back in the same exchange; the
// next forward waits for them layer by layer. Nobody waits for another worker.
//
//   u_i  = r (f(w_i, g_i) - w_i)     r by exchange.asynchronous.rate; momentum and other states live on the worker
//   W   += s u_i                     at the server, s by the staleness of u_i (rules.hpp)
//   w_i  = W                         the answer
//
// Rules: soft synchronisation, dropping, staleness-aware rates, a bound of staleness (rules.hpp), in any combination.
// Norms (clip_norm, LARS, LAMB) are those of the worker, before the push. Running statistics of batch norm move like
// weights. bound = 0, rate = "share" and plain SGD are synchronous training.
//
// At a meeting (Progress::Meets::on_call) all workers stand together with the same weights, which are those tested and
// saved; states of the optimiser are saved by replica. What travels between ranks, and when, is protocol.hpp; messages
// and host memory are memory.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "comm/collective/server.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/asynchronous/memory.hpp"
#include "exchange/averaging/arena_pass.hpp"
#include "exchange/buckets.hpp"
#include "exchange/list.hpp"
#include "exchange/living.hpp"
#include "exchange/step_account.hpp"

namespace echelon::inline exchange {
namespace {

AsyncRules rules_of(const AsynchronousKeys& keys) {
  AsyncRules rules;
  rules.soft = keys.soft;
  if (keys.drop_above >= 0) rules.drop_above = keys.drop_above;
  if (keys.staleness_scale > 0) rules.scale = keys.staleness_scale;
  if (keys.bound >= 0) rules.bound = keys.bound;
  return rules;
}

class Asynchronous final : public Strategy, private ProtocolHost {
 public:
  Asynchronous(const ExchangeConfig& config, const StrategyContext& context)
      : keys_(config.asynchronous), context_(context), account_(context.optimiser), pass_(context.arenas) {
    context.arenas.track_rows(alone());
    AllreduceRequest request = allreduce_request(config, context.engine.transport().hosts(), context.arenas.dtype());
    request.rank = context.engine.rank();
    servers_ = request.servers > 0 ? request.servers : request.ranks;
    const DType dtype = context.arenas.dtype();
    std::vector<Parts> parts;
    std::vector<AsyncBucket> traffic;
    const std::vector<ArenaRange> ranges =
        make_buckets(context.arenas.parameters(), size_of(dtype), config.bucket_mb * 1024 * 1024);
    for (std::size_t b = 0; b < ranges.size(); ++b) {
      request.elems = ranges[b].elems();
      parts.push_back(server_parts(request));
      traffic.push_back({.parts = parts.back(),
                         .tag = context.first_channel + 2 * static_cast<int>(b),
                         .priority = config.priority ? static_cast<int>(ranges.size() - 1 - b) : 0,
                         .recorded = {}});
      buckets_.push_back({.range = ranges[b], .gradient = ReadyCount(ranges[b])});
      count_bytes(parts.back());
    }
    if (alone()) return;
    memory_.emplace(request.rank, ranges, std::move(parts), context.arenas.elems(), dtype, keys_.soft > 1);
    protocol_.emplace(request.rank, request.ranks, rules_of(keys_), std::move(traffic), *memory_);
  }

  std::string_view name() const override { return "asynchronous"; }
  Progress progress() const override { return {.meets = Progress::Meets::on_call}; }
  double divisor(const StepInfo& info) const override { return info.local_weight > 0 ? info.local_weight : 1; }

  void begin_step(const StepInfo& info) override {
    if (!alone() && !attachment_) {
      with_weights({0, context_.arenas.elems()}, [&](const void* weights) { memory_->begin(weights); });
      attachment_ = context_.engine.attach(*protocol_, *this);
    }
    leave_meeting();
    for (Bucket& bucket : buckets_) bucket.gradient.reset();
    account_.begin_step(info);
  }

  void wait_parameters(ArenaRange range) override {
    if (alone()) return;
    ScopedTimer timer(account_.outcome().in_forward_s);
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      if (buckets_[b].range.begin < range.end && range.begin < buckets_[b].range.end) finish(b);
  }

  void gradient_ready(ArenaRange range) override {
    // Of layers that are through: this range's may still read its weights.
    if (!context_.optimiser.waits()) push_ready();
    for (Bucket& bucket : buckets_)
      if (bucket.gradient.add(range, account_.info().step)) bucket.ready = true;
  }

  StepOutcome end_step() override {
    for (const Bucket& bucket : buckets_)
      ECHELON_CHECK(bucket.gradient.complete(), "gradients missing at the end of step {}", account_.info().step);
    ++steps_;
    if (context_.optimiser.waits() && trains()) apply_whole(context_.optimiser, context_.arenas, account_.outcome());
    push_ready();
    return account_.take();
  }

  void come_to_meeting() override {
    if (alone() || !attachment_ || meeting_.valid()) return;
    const StepAccount::ExcludedTime apart(account_);
    for (std::size_t b = 0; b < buckets_.size(); ++b) finish(b);
    ++meetings_;
    post(meet_, meeting_, AsyncProtocol::token(AsyncProtocol::Word::meet));
  }

  void drain() override {
    const StepAccount::ExcludedTime apart(account_);
    leave_meeting();
    context_.arenas.device().synchronize();
  }
  // What the servers serve, each from its own rank.
  bool rescue(Group& living, const std::vector<int>& lost) override {
    int root = 0;
    for (int rank = 0; rank < workers(); ++rank) {
      const bool is_lost = std::find(lost.begin(), lost.end(), rank) != lost.end();
      for (int b = 0; b < static_cast<int>(buckets_.size()); ++b) {
        const ArenaRange part = memory_->place(b, rank);
        if (part.elems() == 0) continue;
        if (is_lost) return false;
        if (rank == context_.engine.rank() && attachment_)
          context_.arenas.device().to_device(context_.arenas.weights_at(part.begin), memory_->served(b),
                                             static_cast<std::size_t>(part.elems()) * size_of(context_.arenas.dtype()));
        broadcast_weights(living, context_.arenas, part, root);
      }
      if (!is_lost) ++root;
    }
    return true;
  }
  void visit_state(StateVisitor& visitor) override {
    pass_.visit_local_states(visitor, context_.optimiser, {context_.engine.rank(), workers()});
  }
  WireCounters wire() const override { return account_.wire(); }
  std::optional<UpdateRecord> updates() const override {
    if (alone()) return {};
    const std::lock_guard lock(mutex_);
    return updates_;
  }
  double formula_bytes_per_step() const override {
    const double steps = static_cast<double>(std::max<std::int64_t>(1, steps_));
    return bytes_of_step_ + bytes_of_meeting_ * static_cast<double>(meetings_) / steps;
  }
  std::string describe() const override {
    if (alone()) return "asynchronous, one replica: nothing to exchange";
    std::string text = fmt::format("asynchronous parameter server, {} in {}, {} in {}", counted(servers_, "server"),
                                   counted(workers(), "worker"),
                                   bytes_text(static_cast<double>(context_.arenas.elems()) *
                                              static_cast<double>(size_of(context_.arenas.dtype()))),
                                   counted(static_cast<std::int64_t>(buckets_.size()), "bucket"));
    if (keys_.soft > 1) text += fmt::format(", {} updates together", keys_.soft);
    if (keys_.drop_above >= 0) text += fmt::format(", dropped above staleness {}", keys_.drop_above);
    if (keys_.staleness_scale > 0) text += fmt::format(", scaled by {} / staleness", keys_.staleness_scale);
    if (keys_.bound >= 0) text += fmt::format(", at most {} ahead", counted(keys_.bound, "step"));
    return text;
  }

 private:
  struct Bucket {
    ArenaRange range;
    ReadyCount gradient;
    bool ready = false;  // its gradient is there, its update is not made yet
    Promise promise = {};
    Ticket ticket = {};  // valid: pushed, and its new weights are not taken over yet
  };

  int workers() const { return context_.engine.size(); }
  bool alone() const { return workers() == 1; }
  bool trains() const { return account_.info().local_weight > 0; }

  // Each worker sends each server but itself its update and gets weights; at a meeting it asks without an update.
  void count_bytes(const Parts& parts) {
    const double header = sizeof(AsyncHeader), elem = static_cast<double>(size_of(context_.arenas.dtype()));
    for (const ElemRange part : parts) {
      if (part.empty()) continue;
      const double bytes = static_cast<double>(part.elems()) * elem;
      bytes_of_step_ += (workers() - 1) * 2 * (header + bytes);
      bytes_of_meeting_ += (workers() - 1) * (2 * header + bytes);
    }
  }

  double rate() const {
    const StepInfo& info = account_.info();
    const double share = info.weight > 0 ? info.local_weight / info.weight : 0;
    return keys_.rate == AsyncRate::full ? 1 : keys_.rate == AsyncRate::sqrt ? std::sqrt(share) : share;
  }

  // The weights of a range on the host, for as long as `use` runs.
  template <class Use>
  void with_weights(ArenaRange range, const Use& use) {
    Device& device = context_.arenas.device();
    if (device.on_host()) {
      device.synchronize();
      return use(context_.arenas.weights_at(range.begin));
    }
    std::vector<std::byte> host(static_cast<std::size_t>(range.elems()) * size_of(context_.arenas.dtype()));
    device.to_host(host.data(), context_.arenas.weights_at(range.begin), host.size());
    use(host.data());
  }

  // Updates of the buckets whose gradients are there; where the optimiser waits for all gradients, they are applied.
  void push_ready() {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      Bucket& bucket = buckets_[b];
      if (!bucket.ready) continue;
      bucket.ready = false;
      ScopedTimer timer(account_.outcome().optimiser_s);
      if (trains() && !context_.optimiser.waits()) context_.optimiser.apply(bucket.range);
      if (alone()) continue;
      ECHELON_CHECK(!bucket.ticket.valid(), "the weights of [{}, {}) were not waited for in step {}",
                    bucket.range.begin, bucket.range.end, account_.info().step);
      with_weights(bucket.range, [&](const void* weights) { memory_->set_update(b, weights, rate()); });
      post(bucket.promise, bucket.ticket, AsyncProtocol::token(AsyncProtocol::Word::push, static_cast<int>(b)));
    }
  }

  void post(Promise& promise, Ticket& ticket, Token token) {
    {
      const std::lock_guard lock(mutex_);
      if (error_) std::rethrow_exception(error_);
      promise = context_.engine.promise();
      ticket = promise.ticket();
    }
    attachment_->post(token);
  }

  void finish(std::size_t b) {
    Bucket& bucket = buckets_[b];
    if (!bucket.ticket.valid()) return;
    {
      ScopedTimer timer(account_.outcome().exchange_wait_s);
      bucket.ticket.wait();
    }
    account_.note(bucket.ticket);
    bucket.ticket = {};
    take_over(b);
  }

  void take_over(std::size_t b) {
    const ArenaRange range = buckets_[b].range;
    context_.arenas.device().to_device(context_.arenas.weights_at(range.begin), memory_->pulled(b),
                                       static_cast<std::size_t>(range.elems()) * size_of(context_.arenas.dtype()));
    context_.arenas.touch();
  }

  // Once all workers have come: the weights of all are those that the servers then had.
  void leave_meeting() {
    if (!meeting_.valid()) return;
    std::exchange(meeting_, {}).wait();
    for (std::size_t b = 0; b < buckets_.size(); ++b) take_over(b);
    const std::lock_guard lock(mutex_);
    account_.note_sent(std::exchange(sent_at_meeting_, {}));
  }

  void on_notified(Token token, double now_s) override {
    const std::lock_guard lock(mutex_);
    if (AsyncProtocol::word_of(token) == AsyncProtocol::Word::settled) {
      const int b = AsyncProtocol::bucket_of(token);
      buckets_[static_cast<std::size_t>(b)].promise.fulfil(protocol_->begun_s(b), now_s, protocol_->take_sent(b));
      return;
    }
    if (AsyncProtocol::word_of(token) != AsyncProtocol::Word::met) return;
    for (int b = 0; b < static_cast<int>(buckets_.size()); ++b) sent_at_meeting_ += protocol_->take_sent(b);
    updates_ = {};
    for (int w = 0; w < workers(); ++w) {
      const StalenessTally of = protocol_->staleness(w);
      updates_.applied += static_cast<double>(of.applied);
      updates_.dropped += static_cast<double>(of.dropped);
      updates_.staleness += of.sum;
      updates_.most_staleness = std::max(updates_.most_staleness, static_cast<double>(of.most));
    }
    meet_.fulfil(now_s, now_s, {});
  }

  void failed(std::exception_ptr error) override {
    const std::lock_guard lock(mutex_);
    error_ = error;
    const double now_s = context_.engine.clock().now_s();
    for (Bucket& bucket : buckets_)
      if (bucket.promise.pending()) bucket.promise.fail(error, now_s);
    if (meet_.pending()) meet_.fail(error, now_s);
  }

  AsynchronousKeys keys_;
  StrategyContext context_;
  StepAccount account_;
  ArenaPass pass_;
  int servers_ = 1;
  std::vector<Bucket> buckets_;  // from the arena's end
  double bytes_of_step_ = 0, bytes_of_meeting_ = 0;
  std::int64_t steps_ = 0, meetings_ = 0;
  Promise meet_;
  Ticket meeting_;  // valid: this worker has come to a meeting, and has not left it
  std::optional<AsyncBuffers> memory_;
  std::optional<AsyncProtocol> protocol_;
  mutable std::mutex mutex_;  // of promises, error and what was sent at a meeting
  WireCounters sent_at_meeting_;
  UpdateRecord updates_;
  std::exception_ptr error_;                // that ended the protocol
  std::unique_ptr<Attachment> attachment_;  // ends first; null with one rank, and before the first step
};

}  // namespace

std::unique_ptr<Strategy> make_asynchronous(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<Asynchronous>(config, context);
}

}  // namespace echelon::inline exchange
