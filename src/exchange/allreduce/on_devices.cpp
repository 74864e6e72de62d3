// SPDX-License-Identifier: Apache-2.0
#include "exchange/allreduce/on_devices.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/group.hpp"
#include "exchange/buckets.hpp"
#include "exchange/facets.hpp"
#include "exchange/step_account.hpp"

namespace echelon::inline exchange {
namespace {

void check_together(const ExchangeConfig& config, const Device& device) {
  if (device.card().empty())
    throw ConfigError(fmt::format(
        "exchange.algorithm '{}' sums between GPUs, but device '{}' is not a GPU; nearest valid: 'mpi', or 'ring'",
        config.algorithm, device.name()));
  if (config.codec != "none")
    throw ConfigError(
        fmt::format("exchange.codec '{}' cannot be combined with exchange.algorithm '{}': the library sums uncoded "
                    "values; nearest valid: 'ring'",
                    config.codec, config.algorithm));
}

// All ranks check together, so that none waits for one that has given up.
void check_ranks(Group& group, const std::string& algorithm, const Device& device) {
  const std::vector<std::string> problems = group.gather(device.allreduce_problem()),
                                 cards = group.gather(device.card());
  std::map<std::string, std::size_t> rank_of;
  for (std::size_t r = 0; r < cards.size(); ++r) {
    if (!problems[r].empty())
      throw EnvironmentError(fmt::format("exchange.algorithm '{}' on rank {}: {}", algorithm, r, problems[r]));
    const auto [other, alone] = rank_of.try_emplace(cards[r], r);
    if (!alone)
      throw EnvironmentError(fmt::format(
          "exchange.algorithm '{}' takes one rank a GPU: ranks {} and {} share {}; start as many ranks on a "
          "host as it has GPUs, or use exchange.algorithm 'ring', which lets them share",
          algorithm, other->second, r, cards[r]));
  }
}

constexpr std::chrono::milliseconds kAskEvery{50};

// Shows the device sums in flight to the watchdog: the engine does not wait for them, but the host may block inside the
// driver.
class WatchedSums {
 public:
  // Collective: all ranks construct it together.
  WatchedSums(Device& device, Engine& engine, int channel, const DeviceGroup& group)
      : engine_(engine), channel_(channel), since_s_(group.slots), ended_s_(group.slots) {
    calling_since_s_ = engine.clock().now_s();
    watch_ = engine.note_watch([this] { return oldest(); });
    try {
      sums_ = device.make_allreduce(group);
    } catch (...) {
      engine.end_wait(watch_);
      throw;
    }
    calling_since_s_ = 0;
    asking_ = std::thread([this] { ask(); });
  }
  ~WatchedSums() {
    engine_.end_wait(watch_);
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    asking_.join();
  }
  WatchedSums(const WatchedSums&) = delete;

  void sum(std::size_t slot, DType dtype, void* data, std::size_t n) {
    const double now_s = engine_.clock().now_s();
    calling_since_s_ = now_s;
    calling_ = slot;
    sums_->sum(slot, dtype, data, n);  // the library may wait for other ranks in this call
    since_s_[slot] = now_s;            // from now on `done` refers to this sum
    calling_since_s_ = 0;
  }
  void join(std::size_t slot) { sums_->join(slot); }

 private:
  // Polls the driver on a thread of its own, because the call may block; the watchdog only reads the results.
  void ask() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kAskEvery, [this] { return over_; })) {
      lock.unlock();
      for (std::size_t slot = 0; slot < since_s_.size(); ++slot)
        if (const double since_s = since_s_[slot]; since_s > ended_s_[slot] && sums_->done(slot))
          ended_s_[slot] = since_s;
      lock.lock();
    }
  }

  // Runs on the watchdog's thread.
  std::optional<WaitView> oldest() const {
    const auto view = [this](std::size_t slot, double since_s) {
      return WaitView{.channel = channel_,
                      .step = static_cast<std::int64_t>(slot),
                      .peer = kDeviceLibrary,
                      .sending = false,
                      .since_s = since_s};
    };
    std::optional<WaitView> oldest;
    if (const double since_s = calling_since_s_; since_s > 0) oldest = view(calling_, since_s);
    for (std::size_t slot = 0; slot < since_s_.size(); ++slot) {
      const double since_s = since_s_[slot];
      if (since_s > ended_s_[slot] && (!oldest || since_s < oldest->since_s)) oldest = view(slot, since_s);
    }
    return oldest;
  }

  Engine& engine_;
  const int channel_;
  std::uint64_t watch_ = 0;
  std::atomic<double> calling_since_s_ = 0;  // 0: no call into the library is in progress
  std::atomic<std::size_t> calling_ = 0;
  std::vector<std::atomic<double>> since_s_;  // by slot: time of its last sum; 0: never
  std::vector<std::atomic<double>> ended_s_;  // by slot: since_s_ of the last sum that was found done
  std::unique_ptr<DeviceAllreduce> sums_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread asking_;
};

class OnDevices final : public Strategy, public SumsOnDevices {
 public:
  OnDevices(const ExchangeConfig& config, const StrategyContext& context)
      : algorithm_(config.algorithm), overlap_(config.overlap), context_(context), account_(context.optimiser) {
    Device& device = context.arenas.device();
    check_together(config, device);
    if (overlap_ == Overlap::layers && (context.optimiser.waits() || replicas() == 1)) overlap_ = Overlap::buckets;
    context.arenas.track_rows(replicas() == 1);
    const DType dtype = context.arenas.dtype();
    AllreduceRequest request{.rank = context.engine.rank(), .ranks = replicas()};
    for (const ArenaRange& range :
         make_buckets(context.arenas.parameters(), size_of(dtype), config.bucket_mb * 1024 * 1024)) {
      buckets_.push_back({.range = range, .gradient = ReadyCount(range)});
      request.elems = range.elems();
      formula_bytes_ +=
          static_cast<double>(price_allreduce(algorithm_, request).payload_elems) * static_cast<double>(size_of(dtype));
    }
    if (replicas() == 1) return;
    Group group(context.engine, context.first_channel);
    check_ranks(group, algorithm_, device);
    sums_ = std::make_unique<WatchedSums>(
        device, context.engine, context.first_channel,
        DeviceGroup{.rank = context.engine.rank(),
                    .ranks = replicas(),
                    .slots = buckets_.size() + 1,
                    .broadcast = [&](void* data, std::size_t bytes) { group.broadcast(data, bytes, 0); }});
  }

  void begin_step(const StepInfo& info) override {
    for (Bucket& bucket : buckets_) bucket.gradient.reset();
    order_.clear();
    account_.begin_step(info);
  }

  void wait_parameters(ArenaRange range) override {
    if (account_.all_completed()) return;
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      if (buckets_[b].range.begin < range.end && range.begin < buckets_[b].range.end) settle(b);
  }

  void gradient_ready(ArenaRange range) override {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      if (!buckets_[b].gradient.add(range, account_.info().step)) continue;
      ECHELON_CHECK(!buckets_[b].in_flight, "the weights of [{}, {}) were not waited for in step {}",
                    buckets_[b].range.begin, buckets_[b].range.end, account_.info().step);
      buckets_[b].in_flight = true;
      account_.submitted();
      order_.push_back(b);
      if (overlap_ != Overlap::none) submit(b);
    }
  }

  // Sums have one order: those of gradients in flight end first. A second communicator would run beside them, and
  // libraries do not promise that two communicators on one GPU make progress.
  bool sum_on_devices(const Tensor& tensor, int ranks) override {
    if (!sums_ || ranks != replicas()) return false;
    const std::size_t slot = buckets_.size();
    sums_->sum(slot, tensor.dtype, tensor.data, static_cast<std::size_t>(tensor.elems()));
    sums_->join(slot);
    return true;
  }

  StepOutcome end_step() override {
    ECHELON_CHECK_EQ(order_.size(), buckets_.size(), "gradients missing at the end of step {}", account_.info().step);
    if (overlap_ == Overlap::none)
      for (const std::size_t b : order_) submit(b);
    if (overlap_ != Overlap::layers) settle_all();
    if (context_.optimiser.waits()) apply_whole(context_.optimiser, context_.arenas, account_.outcome());
    return account_.take();
  }

  void drain() override {
    settle_all();
    context_.arenas.device().synchronize();
  }
  void visit_state(StateVisitor&) override {}
  WireCounters wire() const override { return account_.wire(); }
  double formula_bytes_per_step() const override { return formula_bytes_; }

  std::string describe() const override {
    if (replicas() == 1) return "synchronous, one replica: nothing to exchange";
    const double bytes =
        static_cast<double>(context_.arenas.elems()) * static_cast<double>(size_of(context_.arenas.dtype()));
    return fmt::format("synchronous, {} all-reduce between the GPUs of {} replicas, {} in {}, {}", algorithm_,
                       replicas(), bytes_text(bytes), counted(static_cast<std::int64_t>(buckets_.size()), "bucket"),
                       overlap_ == Overlap::none ? "after back-propagation" : "overlapped with back-propagation");
  }

 private:
  struct Bucket {
    ArenaRange range;
    ReadyCount gradient;
    bool in_flight = false;  // its gradient is ready, but its weights are not yet
  };

  int replicas() const { return context_.engine.size(); }

  void submit(std::size_t b) {
    if (!sums_) return;
    const ArenaRange range = buckets_[b].range;
    const auto n = static_cast<std::size_t>(range.elems());
    sums_->sum(b, context_.arenas.dtype(), context_.arenas.gradients_at(range.begin), n);
    account_.note_sent({.library_calls = 1, .library_bytes = n * size_of(context_.arenas.dtype())});
  }

  void settle(std::size_t b) {
    Bucket& bucket = buckets_[b];
    if (!bucket.in_flight) return;
    if (sums_) {
      const SpanTimer timer(account_.outcome().exchange_wait_s, SpanKind::exchange_wait);
      sums_->join(b);
    }
    const SpanTimer timer(account_.outcome().optimiser_s, SpanKind::optimiser);
    if (!context_.optimiser.waits()) context_.optimiser.apply(bucket.range);
    bucket.in_flight = false;
    account_.completed();
  }

  void settle_all() {
    for (std::size_t b = 0; b < buckets_.size(); ++b) settle(b);
  }

  std::string algorithm_;
  Overlap overlap_;
  StrategyContext context_;
  StepAccount account_;
  std::vector<Bucket> buckets_;        // from the end of the arena on
  std::vector<std::size_t> order_;     // buckets of this step in the order in which they became ready
  std::unique_ptr<WatchedSums> sums_;  // null with one replica
  double formula_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_on_devices(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<OnDevices>(config, context);
}

}  // namespace echelon::inline exchange
