// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvml.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <mutex>

#include "device/throttling.hpp"

namespace echelon::cuda {
namespace {

// The toolkit has no header of the library; names and values are those of "NVML API Reference Guide", "Device Queries"
// and "NvmlClocksEventReasons". Functions return 0 on success.
constexpr unsigned long long kHardwareSlowdown = 0x8, kSoftwareThermal = 0x20, kHardwareThermal = 0x40,
                             kHardwareBrake = 0x80;

struct Nvml {
  int (*init)() = nullptr;
  int (*handle_of)(const char* pci_bus_id, void** device) = nullptr;
  int (*reasons)(void* device, unsigned long long* reasons) = nullptr;
  bool usable = false;
};

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

// The library stays open, because it is queried until the process ends.
Nvml load() {
  Nvml nvml;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return nvml;
  find(library, "nvmlInit_v2", nvml.init);
  find(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.handle_of);
  find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", nvml.reasons);
  nvml.usable = nvml.init && nvml.handle_of && nvml.reasons && nvml.init() == 0;
  return nvml;
}

const Nvml& library() {
  static const Nvml loaded = load();
  return loaded;
}

// Null if the library does not know the card.
void* device_of(int index) {
  static std::mutex mutex;
  static std::map<int, void*> known;
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace(index, nullptr);
  cudaDeviceProp card{};
  if (!fresh) return at->second;
  if (cudaGetDeviceProperties(&card, index) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  const std::string bus = fmt::format("{:08x}:{:02x}:{:02x}.0", card.pciDomainID, card.pciBusID, card.pciDeviceID);
  if (library().handle_of(bus.c_str(), &at->second) != 0) at->second = nullptr;
  return at->second;
}

}  // namespace

unsigned throttled(int index) {
  if (!library().usable) return 0;
  unsigned long long found = 0;
  void* const device = device_of(index);
  if (!device || library().reasons(device, &found) != 0) return 0;
  return ((found & (kSoftwareThermal | kHardwareThermal)) != 0 ? kTooHot : 0) |
         ((found & (kHardwareSlowdown | kHardwareBrake)) != 0 ? kPowerBrake : 0);
}

}  // namespace echelon::cuda
