// SPDX-License-Identifier: Apache-2.0
// Every kind of device that device.kind can name, and the element types in which it computes.
// tests/unit/config/test_registries.cpp compares the names with device/device.hpp.
#pragma once

#include "config/traits/words.hpp"

namespace echelon::inline config {

struct DeviceTraits {
  std::string_view name;
  bool doubles = false;     // computes in f64
  bool f16 = false;         // computes in f16 and
  bool bf16 = false;        // in bf16; on CPUs if they have the instructions, or by emulation
  bool may_be_gpu = false;  // may have a library of its own that sums gradients
  Words reads = {};         // keys of [device] that this kind reads and some others do not
};

inline constexpr DeviceTraits kDevices[] = {
    {.name = "auto", .f16 = true, .bf16 = true, .may_be_gpu = true, .reads = {"pace_ms", "emulate_halves", "tf32"}},
    {.name = "reference", .doubles = true, .reads = {"pace_ms"}},
    {.name = "onednn", .f16 = true, .bf16 = true, .reads = {"pace_ms", "emulate_halves", "tf32"}},
    {.name = "cuda",
     .doubles = true,
     .f16 = true,
     .bf16 = true,
     .may_be_gpu = true,
     .reads = {"allow_fallback", "workspace_mb", "tf32"}},
    {.name = "paced", .reads = {"paced_gflops", "paced_gb_per_s", "paced_table"}}};

}  // namespace echelon::inline config
