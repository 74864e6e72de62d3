// SPDX-License-Identifier: Apache-2.0
// Asynchronous parameter server (Downpour SGD: Dean et al., NIPS 2012). The servers run inside workers
// (exchange.servers of them) or on ranks of their own (exchange.server.ranks). Each worker takes its own optimiser
// steps, sends the changes of its weights to the servers bucket by bucket during back-propagation, and gets the
// servers' weights back in the same exchange; the next forward waits for them layer by layer. No worker waits for
// another one, except under strategy "stale_synchronous" (Cipar et al., HotOS 2013; Ho et al., NIPS 2013), which holds
// the answer to a worker that is more than `bound` steps ahead of the slowest.
//
//   u_i  = r (f(w_i, g_i) - w_i)     r by exchange.asynchronous.rate; momentum and other states are on the worker
//   W   += s u_i                     on the server, s by the staleness of u_i (rules.hpp)
//   w_i  = W                         the answer
//
// With states = "server" workers push gradients g_i, and the servers apply f with their own states (served.hpp).
//
// Soft synchronisation, dropping, staleness-aware rates, a bound of staleness (rules.hpp) and delay compensation
// (device/delay_compensation.hpp) can be combined in any way. Norms (clip_norm, LARS, LAMB) are computed by the worker
// before the push; they are refused if the servers have the states. Running statistics of batch norm are exchanged like
// weights. With bound = 0, rate = "share" and plain SGD this is synchronous training; with states = "server" and soft =
// k it is so for any rule.
//
// At a meeting (Progress::Meets::when_called) all workers have the same weights, which are tested and saved; optimiser
// states are saved per replica, or gathered from the servers. protocol.hpp decides what is sent and when, buffers.hpp
// makes the messages, and codec.hpp codes them.
#include "exchange/asynchronous/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/collective/server.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/buckets.hpp"
#include "exchange/entry.hpp"
#include "exchange/living.hpp"
#include "exchange/server/partition.hpp"

namespace echelon::inline exchange {
namespace {

AsyncRules rules_of(const AsynchronousKeys& keys, std::optional<std::int64_t> bound) {
  AsyncRules rules;
  rules.soft = keys.soft;
  if (keys.drop_above >= 0) rules.drop_above = keys.drop_above;
  if (keys.staleness_scale > 0) rules.scale = keys.staleness_scale;
  rules.bound = bound;
  return rules;
}

}  // namespace

AsyncStrategy::AsyncStrategy(const ExchangeConfig& config, const StrategyContext& context, std::string_view name)
    : name_(name),
      coded_(coded_text(config)),
      keys_(config.asynchronous),
      bound_(async_bound(config)),
      context_(context),
      account_(context.optimiser),
      pass_(context.arenas) {
  context.arenas.track_rows(alone() && coded_.empty());
  AllreduceRequest request = allreduce_request(config, context.engine.transport().hosts(), context.arenas.dtype());
  request.rank = context.engine.rank();
  workers_ = server_workers(request);
  servers_ = server_count(request);
  dedicated_ = request.dedicated_servers;
  if (at_servers() && (context.optimiser.waits() || context.optimiser.whole_parameters()))
    throw ConfigError(
        "exchange.asynchronous.states = \"server\" updates parts of parameters on their servers, but clipping, a "
        "scaled loss, lars and lamb need whole ones; use states = \"worker\"");
  const DType dtype = context.arenas.dtype();
  AsyncBuffers::Layout layout;
  layout.rank = request.rank, layout.workers = workers_, layout.dtype = dtype;
  const std::vector<PartitionedBucket> partition =
      partition_over_servers(config, request, context.arenas.parameters(), dtype);
  for (const PartitionedBucket& bucket : partition) {
    layout.buckets.push_back(bucket.range);
    layout.parts.push_back(server_parts(bucket.request));
  }
  ECHELON_CHECK_LE(context.recorded.size(), layout.buckets.size(), "recorded orders of buckets");
  std::vector<AsyncBucket> traffic;
  std::vector<ArenaRange> own;
  if (!coded_.empty())
    codec_.emplace(config, context.arenas.parameters(),
                   AsyncCodec::Layout{.rank = request.rank,
                                      .ranks = request.ranks,
                                      .workers = workers_,
                                      .buckets = layout.buckets,
                                      .parts = layout.parts,
                                      .dtype = dtype,
                                      .seed = context.seed,
                                      .part = context.part});
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    const ArenaRange range = layout.buckets[b];
    const ElemRange mine = layout.parts[b][static_cast<std::size_t>(request.rank)];
    own.push_back({range.begin + mine.begin, range.begin + mine.end});
    traffic.push_back({.parts = layout.parts[b],
                       .tag = context.first_channel + 2 * static_cast<int>(b),
                       .priority = config.priority ? static_cast<int>(layout.buckets.size() - 1 - b) : 0,
                       .recorded = b < context.recorded.size() ? context.recorded[b] : LedgerBytes{}});
    buckets_.push_back(
        {.range = range, .own = own.back(), .gather = make_pull(partition[b].request), .gradient = ReadyCount(range)});
    count_bytes(static_cast<int>(b), layout.parts[b], partition[b].request);
  }
  if (alone()) return;
  const bool serves = std::any_of(own.begin(), own.end(), [](ArenaRange part) { return part.elems() > 0; });
  const AsyncServing serving{.workers = workers_,
                             .adds_up = keys_.soft > 1,
                             .compensation = {.lambda = keys_.delay_compensation, .decay = keys_.compensation_decay},
                             .keeps_copies = codec_.has_value(),
                             .optimiser = at_servers() ? std::optional(context.optimiser.config()) : std::nullopt};
  if (serves) served_.emplace(server_device(), context.arenas.parameters(), dtype, own, serving);
  if (serving.compensation.adapts())
    mean_square_.resize(static_cast<std::size_t>(context.arenas.elems()) * size_of(dtype));
  ledgers_.resize(buckets_.size());
  memory_.emplace(std::move(layout), context.arenas.parameters(), served(), codec());
  protocol_.emplace(request.rank, workers_, rules_of(keys_, bound_), std::move(traffic), *memory_);
}

// Returns the server's device, separate from the one that the compute thread drives.
std::unique_ptr<Device> AsyncStrategy::server_device() const {
  if (keys_.memory == ServedMemory::device) return context_.arenas.device().beside();
  return open_device("reference", {.only_counts = true});
}

// Each worker sends each server except itself an update and gets weights; at a meeting it sends no update.
void AsyncStrategy::count_bytes(int b, const Parts& parts, const AllreduceRequest& request) {
  const double header = sizeof(AsyncHeader), elem = static_cast<double>(size_of(context_.arenas.dtype()));
  const int senders = dedicated_ ? workers_ : workers_ - 1;
  if (codec_) bytes_of_step_ += codec_->formula_bytes(b, request);
  for (const ElemRange part : parts) {
    if (part.empty()) continue;
    const double bytes = static_cast<double>(part.elems()) * elem;
    bytes_of_step_ += senders * 2 * (header + (codec_ ? 0 : bytes));
    bytes_of_meeting_ += senders * (2 * header + bytes);
  }
}

double AsyncStrategy::formula_bytes_per_step() const {
  const double steps = static_cast<double>(std::max<std::int64_t>(1, steps_));
  return bytes_of_step_ + bytes_of_meeting_ * static_cast<double>(meetings_) / steps;
}

std::string AsyncStrategy::describe() const {
  if (alone()) return fmt::format("{}, one replica: nothing to exchange", name_);
  std::string text = fmt::format(
      "{} parameter server, {} {} {}, {} in {}", bound_ ? "stale-synchronous" : "asynchronous",
      counted(servers_, "server"), dedicated_ ? "beside" : "in", counted(workers_, "worker"),
      bytes_text(static_cast<double>(context_.arenas.elems()) * static_cast<double>(size_of(context_.arenas.dtype()))),
      counted(static_cast<std::int64_t>(buckets_.size()), "bucket"));
  if (bound_) text += fmt::format(", at most {} ahead", counted(*bound_, "step"));
  if (keys_.soft > 1) text += fmt::format(", {} updates together", keys_.soft);
  if (keys_.drop_above >= 0) text += fmt::format(", dropped above staleness {}", keys_.drop_above);
  if (keys_.staleness_scale > 0) text += fmt::format(", scaled by {} / staleness", keys_.staleness_scale);
  if (keys_.delay_compensation > 0) text += ", compensated for their delay";
  if (at_servers()) text += ", updates on the servers";
  if (keys_.memory == ServedMemory::device) text += ", in device memory";
  return text + coded_;
}

void AsyncStrategy::attach() {
  if (alone() || attachment_) return;
  with_host(context_.arenas.weights_at(0), {0, context_.arenas.elems()},
            [&](const void* weights) { memory_->begin(weights); });
  if (served_) begin_serving();
  attachment_ = context_.engine.attach(*protocol_, *this);
}

// Gives the server its part of the states, which at the beginning are equal on all ranks.
void AsyncStrategy::begin_serving() {
  const std::size_t elem = size_of(context_.arenas.dtype());
  served_->go_on_from(static_cast<std::int64_t>(updates_before_));
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b) {
    const ArenaRange own = buckets_[static_cast<std::size_t>(b)].own;
    if (!mean_square_.empty())
      served_->write_mean_square(b, mean_square_.data() + static_cast<std::size_t>(own.begin) * elem);
    for (int s = 0; s < served_->states(); ++s)
      with_host(context_.optimiser.state(s), own, [&](const void* state) { served_->write_state(b, s, state); });
  }
}

void AsyncStrategy::push(std::size_t b) {
  Bucket& bucket = buckets_[b];
  ECHELON_CHECK(!bucket.ticket.valid(), "the weights of [{}, {}) were not waited for in step {}", bucket.range.begin,
                bucket.range.end, account_.info().step);
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    bucket.promise = context_.engine.promise();
    bucket.ticket = bucket.promise.ticket();
  }
  attachment_->post(AsyncProtocol::token(AsyncProtocol::Word::push, static_cast<int>(b)));
}

void AsyncStrategy::take_over(ArenaRange range, const void* values) {
  context_.arenas.device().to_device(context_.arenas.weights_at(range.begin), values,
                                     static_cast<std::size_t>(range.elems()) * size_of(context_.arenas.dtype()));
  context_.arenas.touch();
}

void AsyncStrategy::take_over_served(std::size_t b) {
  const ArenaRange own = buckets_[b].own;
  if (own.elems() == 0) return;
  std::vector<std::byte> host(static_cast<std::size_t>(own.elems()) * size_of(context_.arenas.dtype()));
  served_->read_weights(static_cast<int>(b), host.data());
  take_over(own, host.data());
}

// The protocol may notify a server of at most one meeting to which its host has not come yet.
void AsyncStrategy::come_to_meeting() {
  if (alone()) return;
  attach();  // if this rank had no step to do
  const StepAccount::ExcludedTime apart(account_);
  leave_meeting();  // the meeting before, if no step came between
  begin_meeting();
  if (context_.role == Role::server && !served_) return;  // no one sends anything to this rank
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    meet_ = context_.engine.promise();
    meeting_ = meet_.ticket();
    ++meetings_;
    if (told_ >= meetings_) meet_.fulfil(0, context_.engine.clock().now_s(), {});
  }
  if (context_.role == Role::worker) attachment_->post(AsyncProtocol::token(AsyncProtocol::Word::meet));
}

void AsyncStrategy::leave_meeting() {
  if (!meeting_.valid()) return;
  std::exchange(meeting_, {}).wait();
  end_meeting();
  const std::lock_guard lock(mutex_);
  account_.note_sent(std::exchange(sent_at_meeting_, {}));
}

// Broadcasts what each server serves, including all that was added up, from its own rank.
bool AsyncStrategy::rescue(Group& living, const std::vector<int>& lost) {
  int root = 0;
  for (int rank = 0; rank < context_.engine.size(); ++rank) {
    const bool is_lost = std::find(lost.begin(), lost.end(), rank) != lost.end();
    for (int b = 0; b < static_cast<int>(buckets_.size()); ++b) {
      const ArenaRange part = memory_->range_at(b, rank);
      if (part.elems() == 0) continue;
      if (is_lost) return false;
      if (rank == context_.engine.rank() && attachment_) {
        if (keys_.soft > 1) served_->flush(b);
        take_over_served(static_cast<std::size_t>(b));
      }
      broadcast_weights(living, context_.arenas, part, root);
    }
    if (!is_lost) ++root;
  }
  return true;
}

void AsyncStrategy::drain() {
  const StepAccount::ExcludedTime apart(account_);
  leave_meeting();
  context_.arenas.device().synchronize();
}

std::vector<StalenessTally> AsyncStrategy::staleness() const {
  const std::lock_guard lock(mutex_);
  return staleness_;
}

void AsyncStrategy::on_notified(Token token, double now_s) {
  const std::lock_guard lock(mutex_);
  const AsyncProtocol::Word word = AsyncProtocol::word_of(token);
  if (word == AsyncProtocol::Word::recorded) return keep_ledger(AsyncProtocol::bucket_of(token));
  if (word == AsyncProtocol::Word::settled) {
    const int b = AsyncProtocol::bucket_of(token);
    keep_ledger(b);
    buckets_[static_cast<std::size_t>(b)].promise.fulfil(protocol_->begun_s(b), now_s, protocol_->take_sent(b));
    return;
  }
  if (word != AsyncProtocol::Word::met) return;
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b) {
    sent_at_meeting_ += protocol_->take_sent(b);
    keep_ledger(b);
  }
  staleness_.clear();
  for (int w = 0; w < workers_; ++w) staleness_.push_back(protocol_->staleness(w));
  newest_version_ = protocol_->newest_version();
  ++told_;
  if (meet_.pending()) meet_.fulfil(now_s, now_s, {});
}

void AsyncStrategy::failed(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = error;
  const double now_s = context_.engine.clock().now_s();
  for (Bucket& bucket : buckets_)
    if (bucket.promise.pending()) bucket.promise.fail(error, now_s);
  if (meet_.pending()) meet_.fail(error, now_s);
}

namespace {

std::unique_ptr<Strategy> make_of_role(const ExchangeConfig& config, const StrategyContext& context,
                                       std::string_view name) {
  return context.role == Role::server ? make_async_server(config, context, name)
                                      : make_async_worker(config, context, name);
}

}  // namespace

std::unique_ptr<Strategy> make_asynchronous(const ExchangeConfig& config, const StrategyContext& context) {
  return make_of_role(config, context, "asynchronous");
}

std::unique_ptr<Strategy> make_stale_synchronous(const ExchangeConfig& config, const StrategyContext& context) {
  return make_of_role(config, context, "stale_synchronous");
}

}  // namespace echelon::inline exchange
