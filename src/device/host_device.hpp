// SPDX-License-Identifier: Apache-2.0
// Common base of all devices that use host memory: memory, copies, events, vector operations, updates. A derived class
// adds its name, its ops and the layouts in which they run fastest.
#pragma once

#include "device/device.hpp"
#include "device/host_memory.hpp"

namespace echelon::inline device {

class HostDevice : public Device {
 public:
  explicit HostDevice(const DeviceOptions& options)
      : options_(options), memory_(options.memory_limit_bytes, options.only_counts) {}

  bool on_host() const override { return true; }

  Memory allocate(std::size_t bytes, std::string_view tag) override { return memory_.allocate(bytes, tag); }
  Memory allocate_host(std::size_t bytes) override { return memory_.allocate(bytes, "host staging"); }
  std::size_t allocated_bytes() const override { return memory_.allocated_bytes(); }
  std::size_t peak_bytes() const override { return memory_.peak_bytes(); }

  void to_device(void* dst, const void* src, std::size_t bytes) override;
  void to_host(void* dst, const void* src, std::size_t bytes) override { to_device(dst, src, bytes); }
  void zero(void* dst, std::size_t bytes) override;
  void to_device_async(void* dst, const void* src, std::size_t bytes) override { to_device(dst, src, bytes); }
  void to_host_async(void* dst, const void* src, std::size_t bytes) override { to_device(dst, src, bytes); }
  std::unique_ptr<Event> record() override;
  void synchronize() override {}

  // Uses the loop of host_update.hpp on options().threads threads.
  std::unique_ptr<Update> make_update(std::string_view rule, DType dtype) override;
  VectorOps& vector_ops() override { return host_vector_ops(); }
  std::unique_ptr<Device> beside() override;

 protected:
  const DeviceOptions& options() const { return options_; }

 private:
  DeviceOptions options_;
  HostMemory memory_;
};

// The CPU's name as the system reports it, such as "AMD EPYC 9654"; "CPU" if it reports none.
std::string cpu_name();

}  // namespace echelon::inline device
