// Synchronous data parallelism: every replica's gradients are summed by an all-reduce, bucket by bucket, while
// back-propagation goes on; each replica then takes the same optimiser step, so that all keep identical bits.
//
// A bucket is submitted once the last of its parameters has its gradient. With one replica nothing is sent. Where the
// gradient is clipped by its global norm or the loss is scaled, all buckets are waited for before the first one is
// applied.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/collective/algorithms.hpp"
#include "exchange/buckets.hpp"
#include "exchange/list.hpp"
#include "exchange/staging.hpp"

namespace echelon {
namespace {

class Synchronous final : public Strategy {
 public:
  Synchronous(const ExchangeConfig& config, const StrategyContext& context)
      : algorithm_(config.algorithm), context_(context), staging_(context.arenas) {
    context.arenas.track_rows(context.engine.size() == 1);
    const DType dtype = context.arenas.dtype();
    const Transport& transport = context.engine.transport();
    if (algorithm_ == "mpi" && transport.size() > 1 && !transport.has_library_allreduce())
      throw ConfigError(fmt::format(
          "exchange.algorithm 'mpi' needs a message library; transport {} has none; ring fits", transport.name()));
    AllreduceRequest request;
    request.rank = transport.rank();
    request.ranks = transport.size();
    request.segment_elems = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(config.segment_kb * 1024) / static_cast<std::int64_t>(size_of(dtype)));
    request.hosts = transport.hosts();
    for (ArenaRange range : make_buckets(context.arenas.parameters(), size_of(dtype), config.bucket_mb * 1024 * 1024)) {
      request.elems = range.elems();
      Bucket bucket;
      bucket.range = range;
      bucket.plan = make_allreduce(algorithm_, request);
      formula_bytes_ +=
          static_cast<double>(price_allreduce(algorithm_, request).payload_elems) * static_cast<double>(size_of(dtype));
      buckets_.push_back(std::move(bucket));
    }
    order_.reserve(buckets_.size());
  }

  std::string_view name() const override { return "synchronous"; }

  void begin_step(const StepInfo& info) override {
    info_ = info;
    context_.optimiser.begin_step(info.step, info.learning_rate);
    order_.clear();
    for (Bucket& bucket : buckets_) bucket.ready_elems = 0;
  }

  void wait_parameters(ArenaRange) override {}  // end_step returns with every weight in place

  void gradient_ready(ArenaRange range) override {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      Bucket& bucket = buckets_[b];
      const std::int64_t part = std::min(range.end, bucket.range.end) - std::max(range.begin, bucket.range.begin);
      if (part <= 0) continue;
      bucket.ready_elems += part;
      ECHELON_CHECK_LE(bucket.ready_elems, bucket.range.elems(), "a gradient was announced twice in step {}",
                       info_.step);
      if (bucket.ready_elems == bucket.range.elems()) send(b);
    }
  }

  StepOutcome end_step() override {
    ECHELON_CHECK_EQ(order_.size(), buckets_.size(), "gradients missing at the end of step {}", info_.step);
    StepOutcome outcome;
    outcome.next_step = info_.step + 1;
    double first_start = 0, last_finish = 0;
    for (std::size_t b : order_) {
      Bucket& bucket = buckets_[b];
      if (replicas() > 1) {
        {
          ScopedTimer timer(outcome.exchange_wait_s);
          bucket.ticket.wait();
        }
        first_start = first_start == 0 ? bucket.ticket.started_s() : std::min(first_start, bucket.ticket.started_s());
        last_finish = std::max(last_finish, bucket.ticket.finished_s());
      }
      ScopedTimer timer(outcome.optimiser_s);
      if (replicas() > 1) staging_.store(bucket.range);
      if (!context_.optimiser.waits()) context_.optimiser.apply(bucket.range);
    }
    if (context_.optimiser.waits()) apply_whole(outcome);
    outcome.exchange_busy_s = last_finish - first_start;
    return outcome;
  }

  void drain() override { context_.arenas.device().synchronize(); }
  void visit_state(StateVisitor&) override {}  // nothing outlives a step
  double formula_bytes_per_step() const override { return formula_bytes_; }

  std::string describe() const override {
    if (replicas() == 1) return "synchronous, one replica: nothing to exchange";
    const double bytes =
        static_cast<double>(context_.arenas.elems()) * static_cast<double>(size_of(context_.arenas.dtype()));
    return fmt::format("synchronous, {} all-reduce over {} replicas, {} in {} bucket{}", algorithm_, replicas(),
                       bytes_text(bytes), buckets_.size(), buckets_.size() == 1 ? "" : "s");
  }

 private:
  struct Bucket {
    ArenaRange range;
    std::shared_ptr<const Plan> plan;
    std::int64_t ready_elems = 0;
    Ticket ticket;
  };

  int replicas() const { return context_.engine.size(); }

  // Every replica looks at the same summed gradients, so all find the same norm and verdict without a message.
  void apply_whole(StepOutcome& outcome) {
    ScopedTimer timer(outcome.optimiser_s);
    Optimiser& optimiser = context_.optimiser;
    const ArenaRange all{0, context_.arenas.elems()};
    outcome.loss_scale = optimiser.loss_scale();
    const Optimiser::Verdict verdict = optimiser.accept();
    outcome.skipped = verdict != Optimiser::Verdict::apply;
    outcome.give_up = verdict == Optimiser::Verdict::give_up;
    if (outcome.skipped) return;
    if (optimiser.clips()) outcome.gradient_norm = optimiser.clip(optimiser.measure(all));
    optimiser.apply(all);
  }

  void send(std::size_t b) {
    order_.push_back(b);
    if (replicas() == 1) return;
    Bucket& bucket = buckets_[b];
    Job job;
    job.plan = bucket.plan;
    job.after = staging_.fetch(bucket.range);
    job.data = staging_.gradients(bucket.range);
    job.dtype = context_.arenas.dtype();
    job.channel = context_.first_channel + static_cast<int>(b);
    // Buckets nearer the model's input are wanted first; library collectives go out in one static order.
    job.priority = algorithm_ == "mpi" ? 0 : static_cast<int>(buckets_.size() - 1 - b);
    bucket.ticket = context_.engine.submit(std::move(job));
  }

  std::string algorithm_;
  StrategyContext context_;
  Staging staging_;
  std::vector<Bucket> buckets_;     // from the arena's end
  std::vector<std::size_t> order_;  // of this step: buckets as they were submitted
  StepInfo info_;
  double formula_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_synchronous(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<Synchronous>(config, context);
}

}  // namespace echelon
