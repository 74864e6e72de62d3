// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1 of the stand-in: NVML API Reference Guide, "Device Queries". It knows the stand-in's GPUs; the
// clocks of the second one are reduced for the reasons in ECHELON_CUDA_CALLS_CLOCKS, a number in the library's
// encoding.
#include <cstdlib>
#include <cstring>

namespace {
bool started = false;
}

extern "C" {

int nvmlInit_v2() {
  started = true;
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  constexpr int kNotFound = 6;
  static int cards[2];
  if (!started || std::strlen(bus) != std::strlen("00000000:01:00.0")) return kNotFound;
  const long number = std::strtol(bus + std::strlen("00000000:"), nullptr, 16);
  if (number < 1 || number > 2) return kNotFound;
  *device = &cards[number - 1];
  cards[number - 1] = static_cast<int>(number);
  return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  const char* text = std::getenv("ECHELON_CUDA_CALLS_CLOCKS");
  *reasons = text && *static_cast<int*>(device) == 2 ? std::strtoull(text, nullptr, 0) : 0;
  return 0;
}

}  // extern "C"
