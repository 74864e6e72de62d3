#include "tests/support/far_device.hpp"

#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/error.hpp"
#include "device/host_device.hpp"
#include "device/host_update.hpp"

namespace echelon::test {
namespace {

// Addresses that nobody can read or write, and the memory that they stand for.
class FarMemory {
 public:
  void* add(Memory memory) {
    const std::size_t bytes = memory.bytes() + 1;  // an address even where there is nothing
    void* const far = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (far == MAP_FAILED) throw MemoryError("no addresses are left");
    const std::lock_guard lock(mutex_);
    blocks_[static_cast<std::byte*>(far)] = std::move(memory);
    return far;
  }
  void remove(void* far) {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(static_cast<std::byte*>(far));
    munmap(far, block->second.bytes() + 1);
    blocks_.erase(block);
  }
  std::byte* near(const void* far) const {
    if (!far) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto* address = static_cast<const std::byte*>(far);
    auto block = blocks_.upper_bound(const_cast<std::byte*>(address));
    ECHELON_CHECK(block != blocks_.begin(), "{} is no memory of this device", far);
    --block;
    const auto offset = static_cast<std::size_t>(address - block->first);
    ECHELON_CHECK_LE(offset, block->second.bytes(), "memory of this device");
    return block->second.bytes_at(offset);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::byte*, Memory> blocks_;
};

// Work in the order in which it came, done when somebody waits.
class Queue {
 public:
  void put(std::function<void()> work) { waiting_.push_back(std::move(work)); }
  void finish() {
    for (const std::function<void()>& work : std::exchange(waiting_, {})) work();
  }

 private:
  std::vector<std::function<void()>> waiting_;
};

struct Far {
  FarMemory memory;
  Queue queue;
};

class FarVectorOps final : public VectorOps {
 public:
  explicit FarVectorOps(Far& far) : far_(far) {}
  void fill(DType dtype, void* dst, double value, std::size_t n) override {
    far_.queue.put([=, to = near(dst)] { host_vector_ops().fill(dtype, to, value, n); });
  }
  void copy(DType dtype, void* dst, const void* src, std::size_t n) override {
    far_.queue.put([=, to = near(dst), from = near(src)] { host_vector_ops().copy(dtype, to, from, n); });
  }
  void add(DType dtype, void* dst, const void* src, std::size_t n) override {
    far_.queue.put([=, to = near(dst), from = near(src)] { host_vector_ops().add(dtype, to, from, n); });
  }
  void scale(DType dtype, void* dst, double factor, std::size_t n) override {
    far_.queue.put([=, to = near(dst)] { host_vector_ops().scale(dtype, to, factor, n); });
  }
  void axpy(DType dtype, void* dst, double factor, const void* src, std::size_t n) override {
    far_.queue.put([=, to = near(dst), from = near(src)] { host_vector_ops().axpy(dtype, to, factor, from, n); });
  }
  void compensate(DType dtype, const DelayCompensation& how, const CompensatedUpdate& update, std::size_t n) override {
    const CompensatedUpdate here{.out = near(update.out),
                                 .values = near(update.values),
                                 .rate = update.rate,
                                 .weights = near(update.weights),
                                 .pulled = near(update.pulled),
                                 .mean_square = near(update.mean_square)};
    far_.queue.put([=] { host_vector_ops().compensate(dtype, how, here, n); });
  }
  double sum_squares(DType dtype, const void* src, std::size_t n) override {
    far_.queue.finish();
    return host_vector_ops().sum_squares(dtype, near(src), n);
  }
  double max_abs(DType dtype, const void* src, std::size_t n) override {
    far_.queue.finish();
    return host_vector_ops().max_abs(dtype, near(src), n);
  }
  std::size_t count_not_finite(DType dtype, const void* src, std::size_t n) override {
    far_.queue.finish();
    return host_vector_ops().count_not_finite(dtype, near(src), n);
  }

 private:
  std::byte* near(const void* far) const { return far_.memory.near(far); }
  Far& far_;
};

class FarUpdate final : public Update {
 public:
  FarUpdate(Far& far, std::unique_ptr<Update> update) : far_(far), update_(std::move(update)) {}
  void apply(void* w, const void* g, std::span<void* const> states, std::size_t n,
             const RuleScalars& scalars) override {
    far_.queue.put([update = update_, to = near(w), from = near(g), all = nears(states), n, scalars] {
      update->apply(to, from, all, n, scalars);
    });
  }
  void apply_rows(void* w, const void* g, std::span<void* const> states, const RowMarks& marks,
                  const RuleScalars& scalars) override {
    const RowMarks here{reinterpret_cast<std::uint32_t*>(near(marks.words)), marks.rows, marks.width};
    far_.queue.put([update = update_, to = near(w), from = near(g), all = nears(states), here, scalars] {
      update->apply_rows(to, from, all, here, scalars);
    });
  }

 private:
  std::byte* near(const void* far) const { return far_.memory.near(far); }
  std::vector<void*> nears(std::span<void* const> states) const {
    std::vector<void*> all;
    for (void* state : states) all.push_back(near(state));
    return all;
  }
  Far& far_;
  std::shared_ptr<Update> update_;  // shared with what waits
};

class PassedWork final : public Event {
 public:
  bool ready() const override { return true; }
  void wait() const override {}
};

class FarDevice final : public HostDevice {
 public:
  FarDevice() : HostDevice({}) {}
  std::string_view name() const override { return "far"; }
  std::string describe() const override { return "reference whose memory faults"; }
  bool on_host() const override { return false; }
  bool supports(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64; }

  Memory allocate(std::size_t bytes, std::string_view tag) override {
    void* const address = far_->memory.add(HostDevice::allocate(bytes, tag));
    return Memory(address, bytes, [far = far_](void* data) {
      far->queue.finish();
      far->memory.remove(data);
    });
  }
  void to_device(void* dst, const void* src, std::size_t bytes) override { Device::to_device(dst, src, bytes); }
  void to_host(void* dst, const void* src, std::size_t bytes) override { Device::to_host(dst, src, bytes); }
  void to_device_async(void* dst, const void* src, std::size_t bytes) override {
    far_->queue.put([=, to = far_->memory.near(dst)] { host_vector_ops().copy(DType::u8, to, src, bytes); });
  }
  void to_host_async(void* dst, const void* src, std::size_t bytes) override {
    far_->queue.put([=, from = far_->memory.near(src)] { host_vector_ops().copy(DType::u8, dst, from, bytes); });
  }
  void copy(void* dst, const void* src, std::size_t bytes) override { ops_.copy(DType::u8, dst, src, bytes); }
  void zero(void* dst, std::size_t bytes) override {
    far_->queue.put([to = far_->memory.near(dst), bytes] { std::memset(to, 0, bytes); });
  }
  std::unique_ptr<Event> record() override {
    synchronize();
    return std::make_unique<PassedWork>();
  }
  void synchronize() override { far_->queue.finish(); }

  std::unique_ptr<Op> make(const OpSpec& spec) override {
    throw ConfigError("device far builds no ops: " + spec.text());
  }
  std::unique_ptr<Update> make_update(std::string_view rule, DType dtype) override {
    return std::make_unique<FarUpdate>(*far_, make_host_update(rule, dtype, 1));
  }
  VectorOps& vector_ops() override { return ops_; }
  std::unique_ptr<Device> beside() override { return make_far_device(); }

 private:
  std::shared_ptr<Far> far_ = std::make_shared<Far>();  // blocks of memory may outlive the device
  FarVectorOps ops_{*far_};
};

}  // namespace

std::unique_ptr<Device> make_far_device() { return std::make_unique<FarDevice>(); }

}  // namespace echelon::test
