// SPDX-License-Identifier: Apache-2.0
// Synchronous parameter server (Dean et al., NIPS 2012; Li et al., OSDI 2014). The servers run inside the workers, or
// alone on the last ranks (exchange.server.ranks). Each bucket is cut into one part per server. Workers push gradients
// to the servers as back-propagation finishes them. Once a server has the gradients of all replicas, it takes the
// optimiser's step on its part, and all workers pull the new weights. The next forward waits, layer by layer, for the
// weights that it is about to read.
//
// Compared with an all-reduce, as many bytes are sent; if every rank is a server, each does 1/k of the update.
// Optimiser states are on the server of their part; `gather_state` gathers them, so that checkpoints hold whole states
// and resume on any number of servers. A dedicated server holds whole arenas but uses only its parts: its step receives
// all pushes, updates, and sends the pulls, which overlap the next forward. protocol.hpp decides what is sent and when,
// buffers.hpp makes the messages, and codec.hpp is exchange.codec in both directions.
//
// Norms (clip_norm, LARS, LAMB) and the test of scaled gradients are sums over the parts of all servers: every rank
// then waits for all gradients at the end of a step, all ranks exchange one message of 8 bytes per value, and only then
// parts are updated and pulled.
#include "exchange/server/strategy.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/server.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/entry.hpp"

namespace echelon::inline exchange {

ServerStrategy::ServerStrategy(const ExchangeConfig& config, const StrategyContext& context)
    : request_(allreduce_request(config, context.engine.transport().hosts(), context.arenas.dtype())),
      workers_(server_workers(request_)),
      context_(context),
      gradients_(context.arenas.device(), context.arenas.gradients_at(0), context.arenas.elems(),
                 context.arenas.dtype()),
      weights_(context.arenas.device(), context.arenas.weights_at(0), context.arenas.elems(), context.arenas.dtype()),
      coded_(coded_text(config)),
      account_(context.optimiser) {
  context.arenas.track_rows(alone() && config.codec == "none");
  request_.rank = context.engine.rank();
  const double elem_bytes = static_cast<double>(size_of(context.arenas.dtype()));
  const std::vector<PartitionedBucket> partition =
      partition_over_servers(config, request_, context.arenas.parameters(), context.arenas.dtype());
  codec_ = std::make_unique<ServerCodec>(config, context, partition);
  std::vector<ServerBucket> traffic;
  std::vector<ArenaRange> ranges;
  for (std::size_t b = 0; b < partition.size(); ++b) {
    const AllreduceRequest& request = partition[b].request;
    ranges.push_back(partition[b].range);
    const Parts parts = server_parts(request);
    const ElemRange own = parts[static_cast<std::size_t>(request.rank)];
    formula_bytes_ += static_cast<double>(price_allreduce("server", request).payload_elems) * elem_bytes;
    const std::size_t behind = partition.size() - 1 - b;  // buckets that the next forward needs earlier
    traffic.push_back({.parts = parts, .tag = channel(b), .priority = config.priority ? static_cast<int>(behind) : 0});
    buckets_.push_back({.range = ranges[b],
                        .own = {ranges[b].begin + own.begin, ranges[b].begin + own.end},
                        .gather = make_pull(request),
                        .gradient = ReadyCount(ranges[b])});
  }
  if (!alone()) {
    serve_parts();
    memory_.emplace(std::move(ranges), request_.segment_elems, context.arenas.dtype(), gradients_, weights_, *codec_);
    protocol_.emplace(request_.rank, request_.ranks, workers_, traffic, *memory_);
    attachment_ = context.engine.attach(*protocol_, *this);
  }
  if (codec_->on()) formula_bytes_ = codec_->formula_bytes();
}

// Tells the optimiser its ranges. The channel of its sums follows those of the buckets.
void ServerStrategy::serve_parts() {
  std::vector<ArenaRange> own;
  for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) own.push_back(bucket->own);
  norms_.emplace(context_.engine, channel(buckets_.size()));
  context_.optimiser.serve(std::move(own), [this](std::span<double> values) { norms_->sum(values); });
}

void ServerStrategy::drain() {
  const StepAccount::ExcludedTime apart(account_);
  finish_all();
  context_.arenas.device().synchronize();
}

void ServerStrategy::gather_state() {
  if (states_apart_) gather_served();
  context_.arenas.device().synchronize();
}

std::string ServerStrategy::describe() const {
  if (alone()) return "server, one replica: nothing to exchange";
  const double bytes =
      static_cast<double>(context_.arenas.elems()) * static_cast<double>(size_of(context_.arenas.dtype()));
  return fmt::format("synchronous parameter server, {} {} {}, {} in {}, updates on the servers{}",
                     counted(server_count(request_), "server"), request_.dedicated_servers ? "beside" : "in",
                     counted(workers_, "worker"), bytes_text(bytes),
                     counted(static_cast<std::int64_t>(buckets_.size()), "bucket"), coded_);
}

// Runs on the thread that drives the engine.
void ServerStrategy::on_notified(Token token, double now_s) {
  const int b = ServerProtocol::bucket_of(token);
  const std::lock_guard lock(mutex_);
  buckets_[static_cast<std::size_t>(b)].promise.fulfil(protocol_->begun_s(b), now_s, protocol_->take_sent(b));
}

void ServerStrategy::failed(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = error;
  for (Bucket& bucket : buckets_) bucket.promise.fail(error, context_.engine.clock().now_s());
}

// Hands bucket b to the protocol. The ticket is done when the protocol notifies of b next.
void ServerStrategy::post(std::size_t b, ServerProtocol::Word word, std::shared_ptr<const Event> after) {
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    buckets_[b].promise = context_.engine.promise();
    buckets_[b].ticket = buckets_[b].promise.ticket();
  }
  attachment_->post(ServerProtocol::token(word, static_cast<int>(b)), std::move(after));
}

void ServerStrategy::push(std::size_t b) {
  Bucket& bucket = buckets_[b];
  ECHELON_CHECK(bucket.stage == Stage::idle, "the weights of [{}, {}) were not waited for in step {}",
                bucket.range.begin, bucket.range.end, account_.info().step);
  bucket.stage = Stage::pushed;
  account_.submitted();
  codec_->before_push(b, account_.info().step);
  if (!alone()) post(b, ServerProtocol::Word::gradient, own_gradient(bucket.range));
}

void ServerStrategy::serve_what_is_in() {
  if (context_.optimiser.waits()) return;
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if (buckets_[b].stage == Stage::pushed && buckets_[b].ticket.done()) serve(b);
}

void ServerStrategy::take_sum(std::size_t b) {
  Bucket& bucket = buckets_[b];
  {
    const SpanTimer timer(account_.outcome().exchange_wait_s, SpanKind::exchange_wait);
    bucket.ticket.wait();
  }
  bucket.stage = Stage::pulled;
  const SpanTimer timer(account_.outcome().optimiser_s, SpanKind::optimiser);
  if (!alone()) {
    account_.note(bucket.ticket, static_cast<std::int64_t>(b));
    gradients_.store(bucket.own);
  }
  codec_->before_update(b);
}

void ServerStrategy::serve(std::size_t b) {
  if (context_.optimiser.waits()) return serve_together();
  take_sum(b);
  {
    const SpanTimer timer(account_.outcome().optimiser_s, SpanKind::optimiser);
    const ArenaRange served = alone() ? buckets_[b].range : buckets_[b].own;
    if (served.elems() > 0) context_.optimiser.apply(served);
    codec_->after_update(b);
  }
  if (!alone()) pull(b);
}

void ServerStrategy::serve_where_all_wait() {
  if (context_.optimiser.waits() && buckets_.front().stage == Stage::pushed) serve_together();
}

void ServerStrategy::serve_together() {
  for (std::size_t b = 0; b < buckets_.size(); ++b) take_sum(b);
  apply_whole(context_.optimiser, context_.arenas, account_.outcome());
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    codec_->after_update(b);
    if (!alone()) pull(b);
  }
}

void ServerStrategy::pull(std::size_t b) {
  states_apart_ = true;
  post(b, ServerProtocol::Word::updated, codec_->sends_changes(b) ? nullptr : weights_.fetch(buckets_[b].own));
}

void ServerStrategy::finish(std::size_t b) {
  Bucket& bucket = buckets_[b];
  if (bucket.stage == Stage::idle) return;
  if (bucket.stage == Stage::pushed) serve(b);
  if (!alone()) {
    {
      const SpanTimer timer(account_.outcome().exchange_wait_s, SpanKind::exchange_wait);
      bucket.ticket.wait();
    }
    account_.note(bucket.ticket, static_cast<std::int64_t>(b));
    if (!codec_->sends_changes(b)) store_pulled(b);
    codec_->finish(b);
    context_.arenas.touch();
  }
  bucket.stage = Stage::idle;
  account_.completed();
}

void ServerStrategy::finish_all() {
  for (std::size_t b = 0; b < buckets_.size(); ++b) finish(b);
}

StepOutcome ServerStrategy::take_outcome() {
  StepOutcome outcome = account_.take();
  outcome.codec = codec_->record();
  return outcome;
}

// Gathers each server's part of the optimiser states and of the master weights on all ranks.
void ServerStrategy::gather_served() {
  states_apart_ = false;
  std::vector<ServedBucket> served;
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    served.push_back(
        {.range = buckets_[b].range, .own = buckets_[b].own, .plan = buckets_[b].gather, .channel = channel(b)});
  gather_states(context_.engine, context_.arenas, context_.optimiser, served);
  if (float* master = codec_->master())
    for (const ServedBucket& bucket : served)
      gather_bucket(context_.engine, bucket, master + bucket.range.begin, context_.arenas.dtype(), nullptr);
}

std::unique_ptr<Strategy> make_server(const ExchangeConfig& config, const StrategyContext& context) {
  return context.role == Role::server ? make_dedicated_server(config, context) : make_server_worker(config, context);
}

}  // namespace echelon::inline exchange
