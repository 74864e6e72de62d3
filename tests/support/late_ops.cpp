// SPDX-License-Identifier: Apache-2.0
#include "tests/support/late_ops.hpp"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace echelon::test {
namespace {

class LateVectorOps final : public VectorOps {
 public:
  LateVectorOps(std::shared_ptr<LateStreams> streams, Near near)
      : streams_(std::move(streams)), near_(std::move(near)) {}
  void fill(DType dtype, void* dst, double value, std::size_t n) override {
    put([=, to = near_(dst)] { host_vector_ops().fill(dtype, to, value, n); });
  }
  void copy(DType dtype, void* dst, const void* src, std::size_t n) override {
    put([=, to = near_(dst), from = near_(src)] { host_vector_ops().copy(dtype, to, from, n); });
  }
  void add(DType dtype, void* dst, const void* src, std::size_t n) override {
    put([=, to = near_(dst), from = near_(src)] { host_vector_ops().add(dtype, to, from, n); });
  }
  void scale(DType dtype, void* dst, double factor, std::size_t n) override {
    put([=, to = near_(dst)] { host_vector_ops().scale(dtype, to, factor, n); });
  }
  void axpy(DType dtype, void* dst, double factor, const void* src, std::size_t n) override {
    put([=, to = near_(dst), from = near_(src)] { host_vector_ops().axpy(dtype, to, factor, from, n); });
  }
  void compensate(DType dtype, const DelayCompensation& how, const CompensatedUpdate& update, std::size_t n) override {
    const CompensatedUpdate here{.out = near_(update.out),
                                 .values = near_(update.values),
                                 .rate = update.rate,
                                 .weights = near_(update.weights),
                                 .pulled = near_(update.pulled),
                                 .mean_square = near_(update.mean_square)};
    put([=] { host_vector_ops().compensate(dtype, how, here, n); });
  }
  double sum_squares(DType dtype, const void* src, std::size_t n) override {
    streams_->finish(kOpStream);
    return host_vector_ops().sum_squares(dtype, near_(src), n);
  }
  double max_abs(DType dtype, const void* src, std::size_t n) override {
    streams_->finish(kOpStream);
    return host_vector_ops().max_abs(dtype, near_(src), n);
  }
  std::size_t count_not_finite(DType dtype, const void* src, std::size_t n) override {
    streams_->finish(kOpStream);
    return host_vector_ops().count_not_finite(dtype, near_(src), n);
  }

 private:
  void put(std::function<void()> work) { streams_->put(kOpStream, std::move(work)); }
  std::shared_ptr<LateStreams> streams_;
  Near near_;
};

class LateUpdate final : public Update {
 public:
  LateUpdate(std::shared_ptr<LateStreams> streams, Near near, std::unique_ptr<Update> update)
      : streams_(std::move(streams)), near_(std::move(near)), update_(std::move(update)) {}
  void apply(void* w, const void* g, std::span<void* const> states, std::size_t n,
             const RuleScalars& scalars) override {
    streams_->put(kOpStream, [update = update_, to = near_(w), from = near_(g), all = nears(states), n, scalars] {
      update->apply(to, from, all, n, scalars);
    });
  }
  void apply_rows(void* w, const void* g, std::span<void* const> states, const RowMarks& marks,
                  const RuleScalars& scalars) override {
    const RowMarks here{reinterpret_cast<std::uint32_t*>(near_(marks.words)), marks.rows, marks.width};
    streams_->put(kOpStream, [update = update_, to = near_(w), from = near_(g), all = nears(states), here, scalars] {
      update->apply_rows(to, from, all, here, scalars);
    });
  }

 private:
  std::vector<void*> nears(std::span<void* const> states) const {
    std::vector<void*> all;
    for (void* state : states) all.push_back(near_(state));
    return all;
  }
  std::shared_ptr<LateStreams> streams_;
  Near near_;
  std::shared_ptr<Update> update_;  // shared with the work that waits
};

class LateEvent final : public Event {
 public:
  explicit LateEvent(std::shared_ptr<LateStreams> streams)
      : streams_(std::move(streams)), mark_(streams_->record(kOpStream)) {}
  bool ready() const override { return streams_->passed(mark_); }
  void wait() const override { streams_->finish(mark_); }

 private:
  std::shared_ptr<LateStreams> streams_;
  LateStreams::Mark mark_;
};

class LateTimer final : public DeviceTimer {
 public:
  explicit LateTimer(std::shared_ptr<LateStreams> streams) : streams_(std::move(streams)) {}
  void mark(std::size_t i) override {
    while (readings_.size() <= i) readings_.push_back(std::make_shared<Reading>());
    auto reading = readings_[i] = std::make_shared<Reading>();
    streams_->put(kOpStream, [reading] { reading->at_s = now_s(); });
    reading->mark = streams_->record(kOpStream);
  }
  bool passed(std::size_t i) const override { return streams_->passed(readings_.at(i)->mark); }
  void wait(std::size_t i) const override { streams_->finish(readings_.at(i)->mark); }
  double seconds(std::size_t from, std::size_t to) const override {
    ECHELON_CHECK(passed(from) && passed(to), "readings {} and {} of the clock are not there yet", from, to);
    return readings_[to]->at_s - readings_[from]->at_s;
  }

 private:
  struct Reading {
    double at_s = 0;
    LateStreams::Mark mark = {};
  };
  std::shared_ptr<LateStreams> streams_;
  std::vector<std::shared_ptr<Reading>> readings_;
};

class LateCopyQueue final : public CopyQueue {
 public:
  LateCopyQueue(std::shared_ptr<LateStreams> streams, Near near, std::size_t slots)
      : streams_(std::move(streams)), near_(std::move(near)), stream_(streams_->add()), slots_(slots) {}
  ~LateCopyQueue() override { streams_->finish_all(); }
  void begin(std::size_t slot) override {
    streams_->finish(slots_.at(slot).copied);
    streams_->put_wait(stream_, slots_[slot].released);
  }
  void copy(void* dst, const void* src, std::size_t bytes) override {
    check_pinned(src, bytes);
    streams_->put(stream_, [=, to = near_(dst)] { host_vector_ops().copy(DType::u8, to, src, bytes); });
  }
  void end(std::size_t slot) override {
    slots_.at(slot).copied = streams_->record(stream_);
    streams_->put_wait(kOpStream, slots_[slot].copied);
  }
  void release(std::size_t slot) override { slots_.at(slot).released = streams_->record(kOpStream); }

 private:
  struct Slot {
    LateStreams::Mark copied = {}, released = {};
  };
  std::shared_ptr<LateStreams> streams_;
  Near near_;
  int stream_;
  std::vector<Slot> slots_;
};

struct PinnedBlocks {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t> bytes;
};

PinnedBlocks& pinned_blocks() {
  static PinnedBlocks blocks;
  return blocks;
}

}  // namespace

std::unique_ptr<VectorOps> make_late_vector_ops(std::shared_ptr<LateStreams> streams, Near near) {
  return std::make_unique<LateVectorOps>(std::move(streams), std::move(near));
}

std::unique_ptr<Update> make_late_update(std::shared_ptr<LateStreams> streams, Near near,
                                         std::unique_ptr<Update> update) {
  return std::make_unique<LateUpdate>(std::move(streams), std::move(near), std::move(update));
}

std::unique_ptr<Event> record_late_event(std::shared_ptr<LateStreams> streams) {
  return std::make_unique<LateEvent>(std::move(streams));
}

std::unique_ptr<DeviceTimer> make_late_timer(std::shared_ptr<LateStreams> streams) {
  return std::make_unique<LateTimer>(std::move(streams));
}

std::unique_ptr<CopyQueue> make_late_copy_queue(std::shared_ptr<LateStreams> streams, Near near, std::size_t slots) {
  return std::make_unique<LateCopyQueue>(std::move(streams), std::move(near), slots);
}

Memory pinned(std::shared_ptr<LateStreams> streams, Memory host) {
  PinnedBlocks& blocks = pinned_blocks();
  auto held = std::make_shared<Memory>(std::move(host));
  const std::byte* const address = held->bytes_at(0);
  const std::lock_guard lock(blocks.mutex);
  blocks.bytes[address] = held->bytes();
  return Memory(held->data(), held->bytes(), [held, address, streams = std::move(streams)](void*) mutable {
    streams->finish_all();
    const std::lock_guard freeing(pinned_blocks().mutex);
    pinned_blocks().bytes.erase(address);
    held.reset();
  });
}

void check_pinned(const void* address, std::size_t bytes) {
  PinnedBlocks& blocks = pinned_blocks();
  const auto* const at = static_cast<const std::byte*>(address);
  const std::lock_guard lock(blocks.mutex);
  auto block = blocks.bytes.upper_bound(at);
  const bool inside = block != blocks.bytes.begin() && at + bytes <= (--block)->first + block->second;
  ECHELON_CHECK(inside, "a copy without waiting of {} bytes at {}, which is no memory of allocate_host", bytes,
                address);
}

}  // namespace echelon::test
