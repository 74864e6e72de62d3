// SPDX-License-Identifier: Apache-2.0
// Synchronous data parallelism: an all-reduce sums the gradients of all replicas, bucket by bucket, during
// back-propagation. Each replica then takes the same optimiser step, so that all replicas keep identical bits.
//
// There are three ways of overlapping (exchange.overlap):
//   none      the buckets are submitted after back-propagation
//   buckets   a bucket is submitted once the last of its parameters has its gradient; end_step waits for all buckets
//   layers    as buckets, but end_step waits for none: the next forward waits, layer by layer, for the bucket whose
//             weights it is about to read, and applies it then. Buckets nearer to the model's input are sent first
//             (exchange.priority).
// If the gradient is clipped by its global norm or the loss is scaled, all buckets must arrive before the first is
// applied. With one replica nothing is sent. With optimizer.momentum_before_coding each replica applies momentum to its
// gradients before they are coded (kit/local_momentum.hpp). Sparse parameters are exchanged separately, after
// back-propagation, by touched rows. With exchange.reduction = "adasum" gradients are means over each replica's own
// samples and are combined as in comm/collective/adasum.hpp; sparse parameters are then sent as whole tables.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"
#include "comm/collective/algorithms.hpp"
#include "exchange/allreduce/bucket_sums.hpp"
#include "exchange/allreduce/on_devices.hpp"
#include "exchange/allreduce/row_exchange.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/buckets.hpp"
#include "exchange/entry.hpp"
#include "exchange/kit/local_momentum.hpp"
#include "exchange/step_account.hpp"

namespace echelon::inline exchange {
namespace {

class Synchronous final : public Strategy {
 public:
  Synchronous(const ExchangeConfig& config, const StrategyContext& context)
      : overlap_(config.overlap),
        adasum_(config.reduction == Reduction::adasum),
        context_(context),
        account_(context.optimiser) {
    if (overlap_ == Overlap::layers && (context.optimiser.waits() || replicas() == 1)) overlap_ = Overlap::buckets;
    // Residuals and Adasum's combinations have values in all rows, so that rows are not tracked.
    context.arenas.track_rows(config.codec == "none" && (!adasum_ || replicas() == 1) && !context.noise_scale);
    std::vector<ArenaRange> ranges = make_buckets(context.arenas.parameters(), size_of(context.arenas.dtype()),
                                                  config.bucket_mb * 1024 * 1024, context.arenas.tracks_rows());
    for (const ArenaRange& range : ranges) buckets_.push_back({.range = range, .gradient = ReadyCount(range)});
    sums_.emplace(config, context, std::move(ranges), context.first_channel);
    order_.reserve(buckets_.size());
    AllreduceRequest request = allreduce_request(config, context.engine.transport().hosts(), context.arenas.dtype());
    request.rank = context.engine.rank();
    if (context.optimiser.config().momentum_before_coding)
      momentum_.emplace(context.optimiser.config(), context.arenas);
    rows_.emplace(
        RowRequest{config.algorithm, request, context.arenas.dtype(), context.optimiser.lazy(), config.sparse_density},
        context, sums_->staging(), context.first_channel + sums_->channels());
  }

  double divisor(const StepInfo& info) const override {
    return !adasum_ ? info.weight : info.local_weight > 0 ? info.local_weight : 1;
  }

  void begin_step(const StepInfo& info) override {
    order_.clear();
    rows_->begin_step();
    for (Bucket& bucket : buckets_) bucket.gradient.reset();
    account_.begin_step(info);
  }

  void wait_parameters(ArenaRange range) override {
    if (account_.all_completed()) return;
    for (Bucket& bucket : buckets_)
      if (bucket.in_flight && bucket.range.begin < range.end && range.begin < bucket.range.end) settle(bucket);
    if (rows_in_flight_ && rows_->holds(range)) settle_rows();
  }

  void gradient_ready(ArenaRange range) override {
    if (context_.noise_scale) note_own_squares(range);
    rows_->ready(range, account_.info().step);
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      if (buckets_[b].gradient.add(range, account_.info().step)) ready(b);
  }

  StepOutcome end_step() override {
    ECHELON_CHECK(order_.size() == buckets_.size() && rows_->all_ready(), "gradients missing at the end of step {}",
                  account_.info().step);
    if (overlap_ == Overlap::none)
      for (std::size_t b : order_) submit(b);
    launch_rows();
    if (overlap_ != Overlap::layers) settle_all();
    if (context_.optimiser.waits()) apply_whole(context_.optimiser, context_.arenas, account_.outcome());
    StepOutcome outcome = account_.take();
    outcome.codec = sums_->record();
    return outcome;
  }

  void drain() override {
    const StepAccount::ExcludedTime apart(account_);
    settle_all();
    context_.arenas.device().synchronize();
  }
  WireCounters wire() const override { return account_.wire(); }
  void gather_state() override { sums_->gather_state(); }
  // Requires drain: a bucket in flight is not part of the state.
  void visit_state(StateVisitor& visitor) override {
    sums_->visit_state(visitor);
    if (momentum_) momentum_->visit_state(visitor, {context_.engine.rank(), replicas()});
  }
  double formula_bytes_per_step() const override { return sums_->formula_bytes() + rows_->formula_bytes_per_step(); }

  std::string describe() const override {
    if (replicas() == 1) return "synchronous, one replica: nothing to exchange";
    std::int64_t elems = 0;
    for (const Bucket& bucket : buckets_) elems += bucket.range.elems();
    const double bytes = static_cast<double>(elems) * static_cast<double>(size_of(context_.arenas.dtype()));
    const char* waits = overlap_ == Overlap::none      ? "after back-propagation"
                        : overlap_ == Overlap::buckets ? "overlapped with back-propagation"
                                                       : "overlapped with back-propagation and the next forward pass";
    return fmt::format("synchronous, {} over {} replicas, {} in {} bucket{}, {}{}", sums_->describe(), replicas(),
                       bytes_text(bytes), buckets_.size(), buckets_.size() == 1 ? "" : "s", waits,
                       rows_->empty() ? "" : "; " + rows_->describe()) +
           (momentum_ ? "; momentum is applied before coding" : "");
  }

 private:
  struct Bucket {
    ArenaRange range;
    ReadyCount gradient;
    bool in_flight = false;  // its gradient is ready, but its weights are not yet
  };

  int replicas() const { return context_.engine.size(); }
  std::size_t index_of(const Bucket& bucket) const { return static_cast<std::size_t>(&bucket - buckets_.data()); }

  // Gradients are divided by the weight of the whole step; the factor makes them means over the own samples.
  void note_own_squares(ArenaRange range) {
    const StepInfo& info = account_.info();
    if (info.local_weight <= 0) return;
    const double to_own = info.weight / info.local_weight;
    GradientSquares& squares = account_.outcome().squares;
    squares.own += to_own * to_own * context_.optimiser.measure(range);
    squares.own_inverse = 1 / info.local_weight;
  }
  // A bucket that is settled in the next step's forward pass counts in the next outcome.
  void note_mean_squares(ArenaRange range) {
    GradientSquares& squares = account_.outcome().squares;
    squares.mean += context_.optimiser.measure(range);
    squares.mean_inverse = 1 / account_.info().weight;
  }

  // Waits for a bucket's sum, and applies it unless the optimiser waits for all gradients.
  void settle(Bucket& bucket) {
    sums_->settle(index_of(bucket), account_);
    if (context_.noise_scale) note_mean_squares(bucket.range);
    const SpanTimer timer(account_.outcome().optimiser_s, SpanKind::optimiser);
    if (!context_.optimiser.waits()) context_.optimiser.apply(bucket.range);
    bucket.in_flight = false;
    account_.completed();
  }

  void settle_all() {
    for (Bucket& bucket : buckets_)
      if (bucket.in_flight) settle(bucket);
    if (rows_in_flight_) settle_rows();
  }

  void launch_rows() {
    if (rows_->empty()) return;
    ECHELON_CHECK(!rows_in_flight_, "the rows of step {} were not waited for", account_.info().step - 1);
    const SpanTimer timer(account_.outcome().exchange_wait_s, SpanKind::exchange_wait);
    rows_->launch();
    rows_in_flight_ = true;
    account_.submitted();
  }

  void settle_rows() {
    {
      const SpanTimer timer(account_.outcome().exchange_wait_s, SpanKind::exchange_wait);
      rows_->settle([this](const Ticket& ticket) { account_.note(ticket); });
    }
    const SpanTimer timer(account_.outcome().optimiser_s, SpanKind::optimiser);
    for (const ArenaRange& table : rows_->ranges())
      if (!context_.optimiser.waits()) context_.optimiser.apply(table);
    rows_in_flight_ = false;
    account_.completed();
  }

  void ready(std::size_t b) {
    Bucket& bucket = buckets_[b];
    ECHELON_CHECK(!bucket.in_flight, "the weights of [{}, {}) were not waited for in step {}", bucket.range.begin,
                  bucket.range.end, account_.info().step);
    order_.push_back(b);
    bucket.in_flight = true;
    account_.submitted();
    if (overlap_ != Overlap::none) submit(b);
  }

  void submit(std::size_t b) {
    const StepInfo& info = account_.info();
    const double share = info.weight > 0 ? info.local_weight / info.weight : 0;
    if (momentum_) momentum_->apply(buckets_[b].range, share);
    sums_->submit(b, info.step, share);
  }

  Overlap overlap_;
  bool adasum_;
  StrategyContext context_;
  std::optional<BucketSums> sums_;
  std::optional<LocalMomentum> momentum_;
  std::optional<RowExchange> rows_;
  bool rows_in_flight_ = false;
  std::vector<Bucket> buckets_;     // from the end of the arena on
  std::vector<std::size_t> order_;  // buckets of this step in the order in which they became ready
  StepAccount account_;
};

}  // namespace

std::unique_ptr<Strategy> make_synchronous(const ExchangeConfig& config, const StrategyContext& context) {
  if (sums_on_devices(config.algorithm)) return make_on_devices(config, context);
  return std::make_unique<Synchronous>(config, context);
}

}  // namespace echelon::inline exchange
