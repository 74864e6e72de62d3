// SPDX-License-Identifier: Apache-2.0
// Synchronous training with backup workers (Chen et al., "Revisiting distributed synchronous SGD", 2016). The first k
// gradients of k + r replicas enter each step. A late replica drops its gradient and joins the open step, with its
// weights, number, learning rate and samples. No replica waits for a late one.
//
//   g   = W / (sum of w_i over S) * sum over S of g_i     S: the first k replicas, g_i divided by W, summed by rank
//   w   = f(w, g)                                         on the servers, each for its parts
//
// w_i is the weight of replica i's samples and W that of all samples of the step, so that g is the mean over the
// samples that entered. Running statistics of batch norm take the same mean. With r = 0 this is synchronous training.
// The result of a step depends only on S, not on the order of arrival.
//
// Servers run inside the workers (exchange.servers of them) or on ranks of their own (exchange.server.ranks). The
// thread that drives the engine does their work, so that a server on a late replica is not late; a server on a stopped
// replica is, one on its own rank is not. Replicas meet every `period` steps and at the end of an epoch: all are waited
// for, no step goes past that point, and all hold the same weights. Rules that need whole parameters or gradients are
// refused. protocol.hpp decides what is sent and when, rounds.hpp which gradients enter, buffers.hpp has messages and
// host memory.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"
#include "comm/collective/server.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/backup/buffers.hpp"
#include "exchange/backup/traffic.hpp"
#include "exchange/entry.hpp"
#include "exchange/facets.hpp"
#include "exchange/living.hpp"
#include "exchange/server/gather.hpp"
#include "exchange/server/partition.hpp"
#include "exchange/step_account.hpp"

namespace echelon::inline exchange {
namespace {

class Backup final : public Strategy, public Rescues, private ProtocolHost {
 public:
  Backup(const ExchangeConfig& config, const StrategyContext& context);

  Progress progress() const override { return {.meets = Progress::Meets::by_period, .period = keys_.period}; }

  void begin_step(const StepInfo& info) override;
  void wait_parameters(ArenaRange range) override;
  void gradient_ready(ArenaRange range) override;
  StepOutcome end_step() override;
  void drain() override;
  void gather_state() override;
  bool rescue(Group& living, const std::vector<int>& lost) override;
  void visit_state(StateVisitor&) override {}
  WireCounters wire() const override { return account_.wire(); }
  double formula_bytes_per_step() const override;
  std::string describe() const override;

 private:
  using Word = BackupProtocol::Word;
  struct Bucket {
    ArenaRange range;
    ReadyCount gradient;
    Promise promise = {};
    Ticket ticket = {};  // valid: its new weights are in flight or not in the arena yet
  };

  int workers() const { return workers_; }
  bool alone() const { return context_.engine.size() == 1; }
  bool trains() const { return context_.role == Role::worker; }
  bool dedicated() const { return workers_ < context_.engine.size(); }
  int needed() const { return workers() - static_cast<int>(keys_.of(workers())); }

  void attach(std::int64_t first_step);
  Ticket expect(Promise& promise);
  void finish(std::size_t b);
  template <class Body>
  void while_held(const Body& body);
  void on_notified(Token token, double now_s) override;
  void failed(std::exception_ptr error) override;

  BackupKeys keys_;
  StrategyContext context_;
  Staging gradients_, weights_;
  StepAccount account_;
  int workers_ = 1, servers_ = 1;
  std::vector<Bucket> buckets_;  // from the end of the arena on
  std::vector<ServedBucket> served_;
  BackupProtocol::Setup setup_;
  std::optional<BackupTraffic> traffic_;
  bool states_apart_ = false;  // servers have changed their states since the last gather
  std::int64_t first_step_ = -1, steps_ = 0;
  std::int64_t next_step_ = 0;  // the step whose weights the arena holds once all have arrived
  Promise judged_, quiet_;
  std::optional<BackupBuffers> memory_;
  std::optional<BackupProtocol> protocol_;
  mutable std::mutex mutex_;  // protects promises, error and the members below
  BackupVerdict verdict_;
  std::vector<BackupRounds::Count> counts_;  // on the coordinator: counts up to the last meeting
  std::exception_ptr error_;                 // the error that ended the protocol
  std::unique_ptr<Attachment> attachment_;   // must be destroyed first; null with one rank, and before the first step
};

Backup::Backup(const ExchangeConfig& config, const StrategyContext& context)
    : keys_(config.backup),
      context_(context),
      gradients_(context.arenas.device(), context.arenas.gradients_at(0), context.arenas.elems(),
                 context.arenas.dtype()),
      weights_(context.arenas.device(), context.arenas.weights_at(0), context.arenas.elems(), context.arenas.dtype()),
      account_(context.optimiser) {
  if (context.optimiser.waits() || context.optimiser.whole_parameters())
    throw ConfigError(
        "exchange.strategy \"backup\" updates parts of parameters on their servers, but clipping, a scaled loss, lars "
        "and lamb need whole ones; use strategy \"synchronous\"");
  if (config.codec != "none")
    throw ConfigError("exchange.strategy \"backup\" sends uncoded values and cannot use exchange.codec");
  AllreduceRequest request = allreduce_request(config, context.engine.transport().hosts(), context.arenas.dtype());
  request.rank = context.engine.rank();
  workers_ = server_workers(request);
  servers_ = server_count(request);
  if (config.fewer_workers) keys_.replicas = std::min<std::int64_t>(keys_.of(workers()), workers() - 1);
  if (keys_.of(workers()) >= workers())
    throw ConfigError(fmt::format("exchange.backup.replicas = {} leaves no replica of {} to wait for; at most {}",
                                  keys_.replicas, workers(), workers() - 1));
  context.arenas.track_rows(alone());
  const DType dtype = context.arenas.dtype();
  const std::vector<PartitionedBucket> partition =
      partition_over_servers(config, request, context.arenas.parameters(), dtype);
  setup_ = {.rank = request.rank,
            .workers = workers(),
            .needed = needed(),
            .first_step = 0,
            .buckets = {},
            .tag = context.first_channel};
  const int gathers = context.first_channel + 3;  // the gathers run one after the other
  std::vector<ArenaRange> ranges;
  std::vector<Parts> parts;
  for (std::size_t b = 0; b < partition.size(); ++b) {
    ranges.push_back(partition[b].range);
    parts.push_back(server_parts(partition[b].request));
    const ElemRange own = parts.back()[static_cast<std::size_t>(request.rank)];
    setup_.buckets.push_back({.parts = parts.back(),
                              .tag = gathers + 1 + 2 * static_cast<int>(b),
                              .priority = config.priority ? static_cast<int>(partition.size() - 1 - b) : 0});
    served_.push_back({.range = ranges[b],
                       .own = {ranges[b].begin + own.begin, ranges[b].begin + own.end},
                       .plan = make_pull(partition[b].request),
                       .channel = gathers});
    buckets_.push_back({.range = ranges[b], .gradient = ReadyCount(ranges[b])});
  }
  traffic_.emplace(workers(), servers_, setup_.buckets, static_cast<double>(size_of(dtype)));
  if (!alone())
    memory_.emplace(request.rank, workers(), std::move(ranges), std::move(parts), context.arenas, context.optimiser,
                    gradients_, weights_);
}

void Backup::attach(std::int64_t first_step) {
  first_step_ = next_step_ = first_step;
  memory_->begin();
  setup_.first_step = first_step;
  protocol_.emplace(setup_, *memory_);
  attachment_ = context_.engine.attach(*protocol_, *this);
}

void Backup::begin_step(const StepInfo& info) {
  if (!alone() && !attachment_) attach(info.step);
  for (Bucket& bucket : buckets_) bucket.gradient.reset();
  account_.begin_step(info);
}

void Backup::wait_parameters(ArenaRange range) {
  if (alone()) return;
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if (buckets_[b].range.begin < range.end && range.begin < buckets_[b].range.end) finish(b);
}

void Backup::gradient_ready(ArenaRange range) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    if (!buckets_[b].gradient.add(range, account_.info().step) || alone()) continue;
    ECHELON_CHECK(!buckets_[b].ticket.valid(), "the weights of [{}, {}) were not waited for in step {}",
                  buckets_[b].range.begin, buckets_[b].range.end, account_.info().step);
    attachment_->post(BackupProtocol::token(Word::push, static_cast<int>(b)), gradients_.fetch(buckets_[b].range));
  }
}

StepOutcome Backup::end_step() {
  const StepInfo& info = account_.info();
  if (!trains()) {  // a dedicated server only counts the step, until the next meeting
    states_apart_ = true;
    steps_ = info.step + 1 - first_step_;
    protocol_->set_step(info.step + 1);
    return account_.take();
  }
  for (const Bucket& bucket : buckets_)
    ECHELON_CHECK(bucket.gradient.complete(), "gradients missing at the end of step {}", info.step);
  if (alone()) {
    apply_all(context_.optimiser, context_.arenas, account_.outcome());
    return account_.take();
  }
  states_apart_ = true;
  if (context_.may_lose_workers) memory_->keep_weights();
  const Ticket judged = expect(judged_);
  for (Bucket& bucket : buckets_) bucket.ticket = expect(bucket.promise);
  protocol_->set_complete(
      {.step = info.step, .weight = info.local_weight, .whole = info.weight, .learning_rate = info.learning_rate});
  attachment_->post(BackupProtocol::token(Word::complete));
  {
    const SpanTimer timer(account_.outcome().exchange_wait_s, SpanKind::exchange_wait);
    judged.wait();
  }
  account_.note(judged);
  StepOutcome outcome = account_.take();
  const std::lock_guard lock(mutex_);
  outcome.next_step = verdict_.next_step;
  outcome.contributed = verdict_.entered != 0;
  next_step_ = verdict_.next_step;
  steps_ = next_step_ - first_step_;
  return outcome;
}

void Backup::drain() {
  const StepAccount::ExcludedTime apart(account_);
  for (std::size_t b = 0; b < buckets_.size(); ++b) finish(b);
  if (attachment_) while_held([this] { memory_->store_weights(); });
  context_.arenas.device().synchronize();
}

// Workers that have received all states continue while this rank still sends its own.
void Backup::gather_state() {
  if (!std::exchange(states_apart_, false)) return;
  while_held([this] {
    memory_->store_states();
    gather_states(context_.engine, context_.arenas, context_.optimiser, served_);
    context_.arenas.device().synchronize();
  });
}

// Runs `body` once all steps before the meeting are over; this rank's server takes no step meanwhile.
template <class Body>
void Backup::while_held(const Body& body) {
  const Ticket quiet = expect(quiet_);
  attachment_->post(BackupProtocol::token(Word::quiet));
  quiet.wait();
  account_.note_sent(quiet.wire());
  body();
  attachment_->post(BackupProtocol::token(Word::resume));
}

// Takes the weights of the worker at the newest step, as it pulled them: servers may each be further ahead with their
// parts. The remaining servers provide the optimiser states of their parts; parts of lost servers keep those of the
// last checkpoint. A lost dedicated server cannot be rescued.
bool Backup::rescue(Group& living, const std::vector<int>& lost) {
  if (std::any_of(lost.begin(), lost.end(), [&](int rank) { return rank >= workers(); })) return false;
  const bool arrived = std::none_of(buckets_.begin(), buckets_.end(), [](const Bucket& b) { return b.ticket.valid(); });
  const std::int64_t own_step = arrived ? next_step_ : account_.info().step;
  const std::vector<double> at = living.gather(trains() ? static_cast<double>(own_step) : -1);
  const int newest = static_cast<int>(std::max_element(at.begin(), at.end()) - at.begin());
  Arenas& arenas = context_.arenas;
  if (!arrived && living.rank() == newest) memory_->take_back_weights();
  broadcast_weights(living, arenas, {0, arenas.elems()}, newest);
  if (attachment_) memory_->store_states();
  int root = 0;
  for (int rank = 0; rank < context_.engine.size(); ++rank) {
    if (std::find(lost.begin(), lost.end(), rank) != lost.end()) continue;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const ElemRange part = setup_.buckets[b].parts[static_cast<std::size_t>(rank)];
      broadcast_states(living, arenas, context_.optimiser,
                       {buckets_[b].range.begin + part.begin, buckets_[b].range.begin + part.end}, root);
    }
    ++root;
  }
  return true;
}

// The mean over the steps so far. On ranks other than the coordinator, and before the first meeting, it assumes that
// all gradients enter. NaN if a dedicated server coordinates and gradients may be dropped.
double Backup::formula_bytes_per_step() const {
  if (alone()) return 0;
  if (dedicated() && needed() < workers()) return std::numeric_limits<double>::quiet_NaN();
  const std::lock_guard lock(mutex_);
  const double steps = counts_.empty() ? 1 : static_cast<double>(steps_);
  return traffic_->bytes(steps, counts_) / steps;
}

std::string Backup::describe() const {
  if (alone()) return "backup, one replica: nothing to exchange";
  return fmt::format(
      "synchronous, the first {} of {} gradients enter a step, {} {} the workers, {} in {}", needed(), workers(),
      counted(servers_, "server"), dedicated() ? "beside" : "in",
      bytes_text(static_cast<double>(context_.arenas.elems()) * static_cast<double>(size_of(context_.arenas.dtype()))),
      counted(static_cast<std::int64_t>(buckets_.size()), "bucket"));
}

Ticket Backup::expect(Promise& promise) {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  promise = context_.engine.promise();
  return promise.ticket();
}

// Blocks until the new weights of bucket b are where the next forward reads them.
void Backup::finish(std::size_t b) {
  Bucket& bucket = buckets_[b];
  if (!bucket.ticket.valid()) return;
  {
    const SpanTimer timer(account_.outcome().exchange_wait_s, SpanKind::exchange_wait);
    bucket.ticket.wait();
  }
  account_.note(bucket.ticket, static_cast<std::int64_t>(b));
  bucket.ticket = {};
  weights_.store(bucket.range);
  context_.arenas.touch();
}

void Backup::on_notified(Token token, double now_s) {
  const std::lock_guard lock(mutex_);
  switch (BackupProtocol::word_of(token)) {
    case Word::verdict:
      verdict_ = protocol_->verdict();
      return judged_.fulfil(protocol_->completed_s(), now_s, protocol_->take_sent());
    case Word::pulled:
      return buckets_[static_cast<std::size_t>(BackupProtocol::bucket_of(token))].promise.fulfil(
          protocol_->completed_s(), now_s, protocol_->take_sent());
    case Word::quiet: counts_ = protocol_->counts(); return quiet_.fulfil(now_s, now_s, protocol_->take_sent());
    default: ECHELON_CHECK(false, "word {}", static_cast<int>(BackupProtocol::word_of(token)));
  }
}

void Backup::failed(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = error;
  const double now_s = context_.engine.clock().now_s();
  for (Bucket& bucket : buckets_)
    if (bucket.promise.pending()) bucket.promise.fail(error, now_s);
  for (Promise* promise : {&judged_, &quiet_})
    if (promise->pending()) promise->fail(error, now_s);
}

}  // namespace

std::unique_ptr<Strategy> make_backup(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<Backup>(config, context);
}

}  // namespace echelon::inline exchange
