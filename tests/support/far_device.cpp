// SPDX-License-Identifier: Apache-2.0
#include "tests/support/far_device.hpp"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "device/host_device.hpp"
#include "device/host_update.hpp"
#include "tests/support/late_ops.hpp"

namespace echelon::test {
namespace {

// Reserves addresses that nobody can read or write, and keeps the memory that they stand for.
class FarMemory {
 public:
  void* add(Memory memory) {
    const std::size_t bytes = memory.bytes() + 1;  // an empty block has an address too
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

class FarDevice final : public HostDevice {
 public:
  FarDevice() : HostDevice({}) {}
  std::string_view name() const override { return "far"; }
  std::string describe() const override { return "reference whose memory faults"; }
  bool on_host() const override { return false; }
  bool supports(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64; }

  Memory allocate(std::size_t bytes, std::string_view tag) override {
    void* const address = memory_->add(HostDevice::allocate(bytes, tag));
    return Memory(address, bytes, [memory = memory_, streams = streams_](void* data) {
      streams->finish_all();
      memory->remove(data);
    });
  }
  Memory allocate_host(std::size_t bytes) override { return pinned(streams_, HostDevice::allocate_host(bytes)); }
  void to_device(void* dst, const void* src, std::size_t bytes) override {
    put_copy(memory_->near(dst), src, bytes);
    synchronize();
  }
  void to_host(void* dst, const void* src, std::size_t bytes) override {
    put_copy(dst, memory_->near(src), bytes);
    synchronize();
  }
  void to_device_async(void* dst, const void* src, std::size_t bytes) override {
    check_pinned(src, bytes);
    put_copy(memory_->near(dst), src, bytes);
  }
  void to_host_async(void* dst, const void* src, std::size_t bytes) override {
    check_pinned(dst, bytes);
    put_copy(dst, memory_->near(src), bytes);
  }
  void copy(void* dst, const void* src, std::size_t bytes) override { ops_->copy(DType::u8, dst, src, bytes); }
  void zero(void* dst, std::size_t bytes) override {
    streams_->put(kOpStream, [to = memory_->near(dst), bytes] { std::memset(to, 0, bytes); });
  }
  std::unique_ptr<Event> record() override { return record_late_event(streams_); }
  void synchronize() override { streams_->finish(kOpStream); }
  std::unique_ptr<DeviceTimer> make_timer() override { return make_late_timer(streams_); }
  std::unique_ptr<CopyQueue> make_copy_queue(std::size_t slots) override {
    return make_late_copy_queue(streams_, near_, slots);
  }

  std::unique_ptr<Op> make(const OpSpec& spec) override {
    throw ConfigError("device far builds no ops: " + spec.text());
  }
  std::unique_ptr<Update> make_update(std::string_view rule, DType dtype) override {
    return make_late_update(streams_, near_, make_host_update(rule, dtype, 1));
  }
  VectorOps& vector_ops() override { return *ops_; }
  std::unique_ptr<Device> beside() override { return make_far_device(); }

 private:
  void put_copy(void* to, const void* from, std::size_t bytes) {
    streams_->put(kOpStream, [=] { host_vector_ops().copy(DType::u8, to, from, bytes); });
  }

  std::shared_ptr<FarMemory> memory_ = std::make_shared<FarMemory>();  // blocks of memory may outlive the device
  std::shared_ptr<LateStreams> streams_ = std::make_shared<LateStreams>();
  Near near_ = [memory = memory_](const void* address) { return memory->near(address); };
  std::unique_ptr<VectorOps> ops_ = make_late_vector_ops(streams_, near_);
};

}  // namespace

std::unique_ptr<Device> make_far_device() { return std::make_unique<FarDevice>(); }

}  // namespace echelon::test
