// SPDX-License-Identifier: Apache-2.0
#include "tests/support/discrete_device.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "device/host_device.hpp"
#include "device/reference/reference.hpp"
#include "tests/support/discrete_codec.hpp"
#include "tests/support/discrete_sums.hpp"
#include "tests/support/far_device.hpp"
#include "tests/support/late_ops.hpp"

namespace echelon::test {
namespace {

// An op that runs late, with the arguments that it was given.
class LateOp final : public Op {
 public:
  LateOp(const OpSpec& spec, Device& reference, std::shared_ptr<LateStreams> streams)
      : arguments_(signature(spec).size()), op_(reference.make(spec)), streams_(std::move(streams)) {}
  std::size_t saved_bytes() const override { return op_->saved_bytes(); }
  std::size_t scratch_bytes() const override { return op_->scratch_bytes(); }
  std::string implementation() const override { return op_->implementation(); }
  bool replays() const override { return op_->replays(); }
  void run(const OpArgs& args) override {
    std::vector<void*> tensors(args.tensors, args.tensors + arguments_);
    streams_->put(kOpStream, [op = op_, late = OpArgs(args), tensors = std::move(tensors)]() mutable {
      late.tensors = tensors.data();
      op->run(late);
    });
  }

 private:
  std::size_t arguments_;
  std::shared_ptr<Op> op_;  // shared with the work that waits
  std::shared_ptr<LateStreams> streams_;
};

// The host's codec, run late; the message reaches the host's memory in stream order.
class LateCodec final : public DeviceCodec {
 public:
  LateCodec(std::unique_ptr<DeviceCodec> codec, std::shared_ptr<LateStreams> streams)
      : codec_(std::move(codec)), streams_(std::move(streams)) {}
  void encode(const DeviceEncoding& bucket, std::byte* host) override {
    streams_->put(kOpStream, [codec = codec_, bucket, host] { codec->encode(bucket, host); });
  }
  void decode(std::size_t part, const std::byte* message, std::size_t bytes, float* values) override {
    streams_->put(kOpStream, [=, codec = codec_] { codec->decode(part, message, bytes, values); });
  }
  void decode_add(std::size_t part, const std::byte* message, std::size_t bytes, float* values) override {
    streams_->put(kOpStream, [=, codec = codec_] { codec->decode_add(part, message, bytes, values); });
  }

 private:
  std::shared_ptr<DeviceCodec> codec_;
  std::shared_ptr<LateStreams> streams_;
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
  std::unique_ptr<Op> make(const OpSpec& spec) override {
    return std::make_unique<LateOp>(spec, *reference_, streams_);
  }
  std::unique_ptr<Update> make_update(std::string_view rule, DType dtype) override {
    return make_late_update(streams_, near_, HostDevice::make_update(rule, dtype));
  }
  VectorOps& vector_ops() override { return *ops_; }

  Memory allocate(std::size_t bytes, std::string_view tag) override {
    auto held = std::make_shared<Memory>(HostDevice::allocate(bytes, tag));
    return Memory(held->data(), bytes, [held, streams = streams_](void*) mutable {
      streams->finish_all();
      held.reset();
    });
  }
  Memory allocate_host(std::size_t bytes) override { return pinned(streams_, HostDevice::allocate_host(bytes)); }
  void to_device(void* dst, const void* src, std::size_t bytes) override {
    copy(dst, src, bytes);
    synchronize();
  }
  void to_host(void* dst, const void* src, std::size_t bytes) override { to_device(dst, src, bytes); }
  void to_device_async(void* dst, const void* src, std::size_t bytes) override {
    check_pinned(src, bytes);
    copy(dst, src, bytes);
  }
  void to_host_async(void* dst, const void* src, std::size_t bytes) override {
    check_pinned(dst, bytes);
    copy(dst, src, bytes);
  }
  void copy(void* dst, const void* src, std::size_t bytes) override {
    streams_->put(kOpStream, [=] { host_vector_ops().copy(DType::u8, dst, src, bytes); });
  }
  void zero(void* dst, std::size_t bytes) override {
    streams_->put(kOpStream, [=] { std::memset(dst, 0, bytes); });
  }
  std::unique_ptr<Event> record() override { return record_late_event(streams_); }
  void synchronize() override { streams_->finish(kOpStream); }
  std::unique_ptr<DeviceTimer> make_timer() override { return make_late_timer(streams_); }
  std::unique_ptr<CopyQueue> make_copy_queue(std::size_t slots) override {
    return make_late_copy_queue(streams_, near_, slots);
  }

  // Exports the address, as ranks are threads. The card "shut" exports nothing, the card "deaf" imports nothing.
  std::string export_memory(const Memory& memory) override {
    return card_ == "shut" ? "" : fmt::format("{}", reinterpret_cast<std::uintptr_t>(memory.data()));
  }
  Memory import_memory(const std::string& exported) override {
    if (card_ == "deaf") return {};
    return Memory(reinterpret_cast<void*>(std::stoull(exported)), 0, [](void*) {});
  }
  std::unique_ptr<DeviceCodec> make_codec(const DeviceCodecSpec& spec) override {
    std::unique_ptr<DeviceCodec> codec =
        make_discrete_codec(spec, [](void* dst, const void* src, std::size_t bytes) { std::memcpy(dst, src, bytes); });
    return codec ? std::make_unique<LateCodec>(std::move(codec), streams_) : nullptr;
  }
  std::string card() const override { return card_; }
  std::string allreduce_problem() const override { return card_ == "bare" ? "no library is here" : ""; }
  std::unique_ptr<DeviceAllreduce> make_allreduce(const DeviceGroup& group) override {
    return make_discrete_sums(group, streams_, card_.starts_with("stuck"));
  }
  std::unique_ptr<Device> beside() override { return make_far_device(); }

 private:
  std::unique_ptr<Device> reference_;
  std::string card_;
  std::shared_ptr<LateStreams> streams_ = std::make_shared<LateStreams>();
  Near near_ = [](const void* address) { return const_cast<std::byte*>(static_cast<const std::byte*>(address)); };
  std::unique_ptr<VectorOps> ops_ = make_late_vector_ops(streams_, near_);
};

}  // namespace

std::unique_ptr<Device> make_discrete_device(const std::string& card) { return std::make_unique<DiscreteDevice>(card); }

}  // namespace echelon::test
