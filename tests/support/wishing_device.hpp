// SPDX-License-Identifier: Apache-2.0
// A device that asks for one layout everywhere.
#pragma once

#include "device/device.hpp"

namespace echelon::test {

// Otherwise it is another device: it shows what a machine with another ISA would ask for.
class WishingDevice final : public Device {
 public:
  WishingDevice(Device& device, Layout layout) : device_(device), layout_(layout) {}
  std::string_view name() const override { return device_.name(); }
  std::string describe() const override { return device_.describe(); }
  bool on_host() const override { return true; }
  bool supports(DType dtype) const override { return device_.supports(dtype); }
  bool has(OpKind kind, DType dtype) const override { return device_.has(kind, dtype); }
  Memory allocate(std::size_t bytes, std::string_view tag) override { return device_.allocate(bytes, tag); }
  std::size_t allocated_bytes() const override { return device_.allocated_bytes(); }
  std::size_t peak_bytes() const override { return device_.peak_bytes(); }
  void to_device(void* dst, const void* src, std::size_t bytes) override { device_.to_device(dst, src, bytes); }
  void to_host(void* dst, const void* src, std::size_t bytes) override { device_.to_host(dst, src, bytes); }
  void zero(void* dst, std::size_t bytes) override { device_.zero(dst, bytes); }
  void to_device_async(void* dst, const void* src, std::size_t bytes) override { to_device(dst, src, bytes); }
  void to_host_async(void* dst, const void* src, std::size_t bytes) override { to_host(dst, src, bytes); }
  Memory allocate_host(std::size_t bytes) override { return device_.allocate_host(bytes); }
  std::unique_ptr<Event> record() override { return device_.record(); }
  void synchronize() override { device_.synchronize(); }
  std::unique_ptr<Op> make(const OpSpec& spec) override { return device_.make(spec); }
  std::unique_ptr<Update> make_update(std::string_view rule, DType dtype) override {
    return device_.make_update(rule, dtype);
  }
  VectorOps& vector_ops() override { return device_.vector_ops(); }
  std::unique_ptr<Device> beside() override { return device_.beside(); }

  LayoutWish layouts(const OpSpec& spec) const override {
    LayoutWish wish{spec.layouts};
    const std::vector<ArgInfo> args = signature(spec);
    for (std::size_t a = 0; a < args.size(); ++a)
      if (args[a].movable) wish.layouts[a] = layout_;
    return wish;
  }

 private:
  Device& device_;
  Layout layout_;
};

}  // namespace echelon::test
