// SPDX-License-Identifier: Apache-2.0
#include "device/host_device.hpp"

#include <cstring>
#include <fstream>

#include "device/host_update.hpp"
#include "device/reference/reference.hpp"

namespace echelon::inline device {
namespace {

class PassedEvent final : public Event {
 public:
  bool ready() const override { return true; }
  void wait() const override {}
};

}  // namespace

void HostDevice::to_device(void* dst, const void* src, std::size_t bytes) {
  if (bytes > 0) std::memmove(dst, src, bytes);
}

void HostDevice::zero(void* dst, std::size_t bytes) {
  if (bytes > 0) std::memset(dst, 0, bytes);
}

std::unique_ptr<Event> HostDevice::record() { return std::make_unique<PassedEvent>(); }

std::unique_ptr<Update> HostDevice::make_update(std::string_view rule, DType dtype) {
  return make_host_update(rule, dtype, options_.threads);
}

std::unique_ptr<Device> HostDevice::beside() { return make_reference_device({.only_counts = true}); }

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      if (const auto at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
  return "CPU";
}

}  // namespace echelon::inline device
