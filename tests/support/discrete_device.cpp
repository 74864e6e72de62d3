#include "tests/support/discrete_device.hpp"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "device/host_device.hpp"
#include "device/reference/reference.hpp"
#include "tests/support/discrete_codec.hpp"
#include "tests/support/discrete_sums.hpp"
#include "tests/support/far_device.hpp"

namespace echelon::test {
namespace {

struct Copy {
  void* dst;
  const void* src;
  std::size_t bytes;
};

class LateEvent final : public Event {
 public:
  explicit LateEvent(std::vector<Copy> copies) : copies_(std::move(copies)) {}
  bool ready() const override {
    const std::lock_guard lock(mutex_);
    if (++asked_ < 3) return false;
    for (const Copy& copy : copies_) std::memcpy(copy.dst, copy.src, copy.bytes);
    copies_.clear();
    return true;
  }
  void wait() const override {
    while (!ready()) continue;
  }

 private:
  mutable std::mutex mutex_;
  mutable int asked_ = 0;
  mutable std::vector<Copy> copies_;
};

class DiscreteDevice final : public HostDevice {
 public:
  explicit DiscreteDevice(std::string card)
      : HostDevice({}), reference_(make_reference_device({})), card_(std::move(card)) {
    if (card_.empty()) card_ = fmt::format("far {}", static_cast<const void*>(this));
  }
  std::string_view name() const override { return "discrete"; }
  std::string describe() const override { return "reference out of reach"; }
  bool on_host() const override { return false; }
  bool supports(DType dtype) const override { return reference_->supports(dtype); }
  LayoutWish layouts(const OpSpec& spec) const override { return reference_->layouts(spec); }
  std::unique_ptr<Op> make(const OpSpec& spec) override { return reference_->make(spec); }

  void to_host_async(void* dst, const void* src, std::size_t bytes) override { copies_.push_back({dst, src, bytes}); }
  void zero(void* dst, std::size_t bytes) override {  // after what was enqueued before it
    for (const Copy& copy : copies_) std::memcpy(copy.dst, copy.src, copy.bytes);
    copies_.clear();
    HostDevice::zero(dst, bytes);
  }
  // Its address: ranks are threads here. The card "shut" hands out none, the card "deaf" reaches none.
  std::string export_memory(const Memory& memory) override {
    return card_ == "shut" ? "" : fmt::format("{}", reinterpret_cast<std::uintptr_t>(memory.data()));
  }
  Memory import_memory(const std::string& exported) override {
    if (card_ == "deaf") return {};
    return Memory(reinterpret_cast<void*>(std::stoull(exported)), 0, [](void*) {});
  }
  std::unique_ptr<DeviceCodec> make_codec(const DeviceCodecSpec& spec) override {
    return make_discrete_codec(
        spec, [this](void* dst, const void* src, std::size_t bytes) { to_host_async(dst, src, bytes); });
  }
  std::string card() const override { return card_; }
  std::string allreduce_problem() const override { return card_ == "bare" ? "no library is here" : ""; }
  std::unique_ptr<DeviceAllreduce> make_allreduce(const DeviceGroup& group) override {
    return make_discrete_sums(group);
  }
  std::unique_ptr<Device> beside() override { return make_far_device(); }
  std::unique_ptr<Event> record() override { return std::make_unique<LateEvent>(std::exchange(copies_, {})); }

 private:
  std::unique_ptr<Device> reference_;
  std::string card_;
  std::vector<Copy> copies_;
};

}  // namespace

std::unique_ptr<Device> make_discrete_device(const std::string& card) { return std::make_unique<DiscreteDevice>(card); }

}  // namespace echelon::test
