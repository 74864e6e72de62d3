// Synchronous parameter server (Dean et al., NIPS 2012; Li et al., OSDI 2014), its servers inside the workers, or on
// the last ranks of the world alone (exchange.server_ranks): each bucket is cut into one part a server. Gradients are
// pushed to the part's server as back-propagation finishes them; once all replicas' are in, the server takes the
// optimiser's step on its part, and everybody pulls the new weights. The next forward waits, layer by layer, for the
// weights that it is about to read.
//
// Against an all-reduce: as many bytes, a k-th of the update's work on each rank where every rank is a server, and
// states of the optimiser live where their part is served; `gather_state` brings them together, so that checkpoints
// hold whole states and resume on any number of servers. A server on a rank of its own keeps whole arenas, of which it
// uses its parts; its step is to take in all pushes, update, and send the pulls, which end beside the next forward.
// What travels between ranks, and when, is protocol.hpp; memory.hpp makes the messages. Rules that look at whole
// parameters or gradients (lars, lamb, clipping, a scaled loss) are refused: a server sees parts. What exchange.codec
// does to both ways is in codec.hpp.
#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/server.hpp"
#include "exchange/buckets.hpp"
#include "exchange/list.hpp"
#include "exchange/request.hpp"
#include "exchange/server/codec.hpp"
#include "exchange/server/memory.hpp"
#include "exchange/server/protocol.hpp"
#include "exchange/staging.hpp"
#include "exchange/step_account.hpp"

namespace echelon {
namespace {

class Server final : public Strategy, private ProtocolHost {
 public:
  Server(const ExchangeConfig& config, const StrategyContext& context)
      : request_(allreduce_request(config, context.engine.transport().hosts(), context.arenas.dtype())),
        workers_(server_workers(request_)),
        context_(context),
        gradients_(context.arenas.device(), context.arenas.gradients_at(0), context.arenas.elems(),
                   context.arenas.dtype()),
        weights_(context.arenas.device(), context.arenas.weights_at(0), context.arenas.elems(), context.arenas.dtype()),
        account_(context.optimiser) {
    if (context.optimiser.waits() || context.optimiser.whole_parameters())
      throw ConfigError(
          "exchange.strategy \"server\" updates parts of parameters on their servers: clipping, a scaled loss, "
          "lars and lamb look at whole ones; strategy \"synchronous\" fits");
    context.arenas.track_rows(alone() && config.codec == "none");
    AllreduceRequest& request = request_;
    request.rank = context.engine.rank();
    const double elem_bytes = static_cast<double>(size_of(context.arenas.dtype()));
    const std::vector<ArenaRange> ranges =
        make_buckets(context.arenas.parameters(), size_of(context.arenas.dtype()), config.bucket_mb * 1024 * 1024);
    codec_ = std::make_unique<ServerCodec>(config, context, request, ranges);
    std::vector<ServerBucket> traffic;
    for (std::size_t b = 0; b < ranges.size(); ++b) {
      request.elems = ranges[b].elems();
      const Parts parts = server_parts(request);
      const ElemRange own = parts[static_cast<std::size_t>(request.rank)];
      formula_bytes_ += static_cast<double>(price_allreduce("server", request).payload_elems) * elem_bytes;
      const std::size_t behind = ranges.size() - 1 - b;  // buckets that the next forward needs before this one
      traffic.push_back(
          {.parts = parts, .tag = channel(b), .priority = config.priority ? static_cast<int>(behind) : 0});
      buckets_.push_back({.range = ranges[b],
                          .own = {ranges[b].begin + own.begin, ranges[b].begin + own.end},
                          .gather = make_pull(request),
                          .gradient = ReadyCount(ranges[b])});
    }
    if (!alone()) {
      memory_.emplace(ranges, request.segment_elems, context.arenas.dtype(), gradients_, weights_, *codec_);
      protocol_.emplace(request.rank, request.ranks, workers_, traffic, *memory_);
      attachment_ = context.engine.attach(*protocol_, *this);
    }
    if (codec_->on()) formula_bytes_ = codec_->formula_bytes();
  }

  std::string_view name() const override { return "server"; }
  Role role() const override { return context_.engine.rank() < workers_ ? Role::worker : Role::server; }

  void begin_step(const StepInfo& info) override {
    if (role() == Role::server) finish_all();
    for (Bucket& bucket : buckets_) bucket.gradient.reset();
    account_.begin_step(info);
    if (role() == Role::server)
      for (std::size_t b = 0; b < buckets_.size(); ++b) push(b);
  }

  void wait_parameters(ArenaRange range) override {
    if (account_.all_home()) return;
    ScopedTimer timer(account_.outcome().in_forward_s);
    serve_what_is_in();
    for (Bucket& bucket : buckets_)
      if (bucket.range.begin < range.end && range.begin < bucket.range.end) finish(bucket);
  }

  void gradient_ready(ArenaRange range) override {
    serve_what_is_in();  // of layers that are through: this range's may still read its weights
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      if (buckets_[b].gradient.add(range, account_.info().step)) push(b);
  }

  StepOutcome end_step() override {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      serve_what_is_in();
      if (role() == Role::server && buckets_[b].stage == Stage::pushed) serve(b);
      ECHELON_CHECK(role() == Role::server || buckets_[b].gradient.complete(),
                    "gradients missing at the end of step {}", account_.info().step);
    }
    if (alone()) finish_all();
    StepOutcome outcome = account_.take();
    outcome.codec = codec_->record();
    return outcome;
  }

  void drain() override {
    const StepAccount::Apart apart(account_);
    finish_all();
    context_.arenas.device().synchronize();
  }

  void gather_state() override {
    if (states_apart_) gather_states();
    context_.arenas.device().synchronize();
  }

  // What is not drained yet is no state.
  void visit_state(StateVisitor& visitor) override { codec_->visit_state(visitor); }
  WireCounters wire() const override { return account_.wire(); }
  double formula_bytes_per_step() const override { return formula_bytes_; }

  std::string describe() const override {
    if (alone()) return "server, one replica: nothing to exchange";
    const double bytes =
        static_cast<double>(context_.arenas.elems()) * static_cast<double>(size_of(context_.arenas.dtype()));
    const int servers = request_.servers > 0 ? request_.servers : workers_;
    return fmt::format("synchronous parameter server, {} {} {}, {} in {}, updates on the servers{}",
                       counted(servers, "server"), request_.dedicated_servers ? "beside" : "in",
                       counted(workers_, "worker"), bytes_text(bytes),
                       counted(static_cast<std::int64_t>(buckets_.size()), "bucket"), codec_->describe());
  }

 private:
  enum class Stage : std::uint8_t { idle, pushed, pulled };
  struct Bucket {
    ArenaRange range;
    ArenaRange own;                      // what this rank serves of it
    std::shared_ptr<const Plan> gather;  // of what each server has of it, to all ranks
    ReadyCount gradient;
    Stage stage = Stage::idle;
    Promise promise = {};
    Ticket ticket = {};
  };

  bool alone() const { return context_.engine.size() == 1; }
  int channel(std::size_t b) const { return context_.first_channel + 2 * static_cast<int>(b); }

  // On the thread that drives the engine.
  void told(Token token, double now_s) override {
    const int b = ServerProtocol::bucket_of(token);
    const std::lock_guard lock(mutex_);
    buckets_[static_cast<std::size_t>(b)].promise.fulfil(protocol_->begun_s(b), now_s, protocol_->take_sent(b));
  }
  void failed(std::exception_ptr error) override {
    const std::lock_guard lock(mutex_);
    error_ = error;
    for (Bucket& bucket : buckets_) bucket.promise.fail(error, context_.engine.clock().now_s());
  }

  // Hands bucket b to the protocol; the ticket is done once that tells of it again.
  void post(std::size_t b, ServerProtocol::Word word, std::shared_ptr<const Event> after) {
    {
      const std::lock_guard lock(mutex_);
      if (error_) std::rethrow_exception(error_);
      buckets_[b].promise = context_.engine.promise();
      buckets_[b].ticket = buckets_[b].promise.ticket();
    }
    attachment_->post(ServerProtocol::token(word, static_cast<int>(b)), std::move(after));
  }

  void push(std::size_t b) {
    Bucket& bucket = buckets_[b];
    ECHELON_CHECK(bucket.stage == Stage::idle, "the weights of [{}, {}) were not waited for in step {}",
                  bucket.range.begin, bucket.range.end, account_.info().step);
    bucket.stage = Stage::pushed;
    account_.leaves();
    codec_->before_push(b, account_.info().step);
    if (alone()) return;
    post(b, ServerProtocol::Word::gradient, role() == Role::worker ? gradients_.fetch(bucket.range) : nullptr);
  }

  // Servers update what has come in and send the weights out.
  void serve_what_is_in() {
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      if (buckets_[b].stage == Stage::pushed && buckets_[b].ticket.done()) serve(b);
  }

  void serve(std::size_t b) {
    Bucket& bucket = buckets_[b];
    {
      ScopedTimer timer(account_.outcome().exchange_wait_s);
      bucket.ticket.wait();
    }
    bucket.stage = Stage::pulled;
    {
      ScopedTimer timer(account_.outcome().optimiser_s);
      if (!alone()) {
        note(bucket.ticket);
        gradients_.store(bucket.own);
      }
      const ArenaRange served = alone() ? bucket.range : bucket.own;
      codec_->before_update(b);
      if (served.elems() > 0) context_.optimiser.apply(served);
      codec_->after_update(b);
    }
    if (!alone()) pull(b);
  }

  void pull(std::size_t b) {
    states_apart_ = true;
    post(b, ServerProtocol::Word::updated, codec_->sends_changes(b) ? nullptr : weights_.fetch(buckets_[b].own));
  }

  // Until the bucket's new weights are in the arena.
  void finish(Bucket& bucket) {
    if (bucket.stage == Stage::idle) return;
    if (bucket.stage == Stage::pushed) serve(static_cast<std::size_t>(&bucket - buckets_.data()));
    if (!alone()) {
      {
        ScopedTimer timer(account_.outcome().exchange_wait_s);
        bucket.ticket.wait();
      }
      note(bucket.ticket);
      const auto b = static_cast<std::size_t>(&bucket - buckets_.data());
      if (!codec_->sends_changes(b) && role() == Role::worker) {
        weights_.store({bucket.range.begin, bucket.own.begin});
        weights_.store({bucket.own.end, bucket.range.end});
      }
      codec_->finish(b);
      context_.arenas.touch();
    }
    bucket.stage = Stage::idle;
    account_.is_home();
  }

  void finish_all() {
    for (Bucket& bucket : buckets_) finish(bucket);
  }

  // Each server's part of the optimiser's states and of the weights that it keeps to itself, to everybody.
  void gather_states() {
    states_apart_ = false;
    for (int s = 0; s < context_.optimiser.states(); ++s) {
      Staging states(context_.arenas.device(), context_.optimiser.state(s), context_.arenas.elems(),
                     context_.arenas.dtype());
      for (std::size_t b = 0; b < buckets_.size(); ++b) {
        gather(b, states.at(buckets_[b].range.begin), states.fetch(buckets_[b].own));
        states.store(buckets_[b].range);
      }
    }
    if (float* master = codec_->master())
      for (std::size_t b = 0; b < buckets_.size(); ++b) gather(b, master + buckets_[b].range.begin, nullptr);
  }

  void gather(std::size_t b, void* data, std::shared_ptr<const Event> after) {
    context_.engine.run({.plan = buckets_[b].gather,
                         .data = data,
                         .dtype = context_.arenas.dtype(),
                         .channel = channel(b),
                         .priority = 0,
                         .after = std::move(after)});
  }

  void note(const Ticket& ticket) {
    account_.note_sent(ticket.wire());
    account_.note_times(ticket);
  }

  AllreduceRequest request_;
  int workers_;
  StrategyContext context_;
  Staging gradients_, weights_;
  std::unique_ptr<ServerCodec> codec_;
  std::vector<Bucket> buckets_;  // from the arena's end
  StepAccount account_;
  bool states_apart_ = false;  // servers have moved their states since they were brought together
  double formula_bytes_ = 0;
  std::optional<ServerBuffers> memory_;
  std::optional<ServerProtocol> protocol_;
  std::mutex mutex_;                        // of the promises and the error
  std::exception_ptr error_;                // that ended the protocol
  std::unique_ptr<Attachment> attachment_;  // ends first; null with one rank
};

}  // namespace

std::unique_ptr<Strategy> make_server(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<Server>(config, context);
}

}  // namespace echelon
