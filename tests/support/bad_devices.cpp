// SPDX-License-Identifier: Apache-2.0
// Settings of [device] that a device refuses, or that need a device which is missing.
#include "tests/support/bad_configs.hpp"

namespace echelon::test {
namespace {

std::string plus(const std::string& more) { return good_config() + more; }

}  // namespace

const std::vector<BadConfig>& bad_device_configs() {
  static const std::vector<BadConfig> all = {
      {"f64 on onednn",
       plus("[device]\nkind = \"onednn\"\ndtype = \"f64\"\n"),
       {"@22:1", "does not compute in f64", "\"reference\" or \"cuda\""}},
      {"halves on the reference",
       plus("[device]\nkind = \"reference\"\ndtype = \"bf16\"\n"),
       {"@22:1", "nearest valid: \"f32\" or \"f64\"", "\"onednn\" or \"cuda\""}},
      {"f16 on the reference",
       plus("[device]\nkind = \"reference\"\ndtype = \"f16\"\n"),
       {"@22:1", "does not compute in f16", "\"onednn\""}},
      {"nothing to emulate", plus("[device]\nkind = \"onednn\"\nemulate_halves = true\n"), {"@22:1", "\"bf16\""}},
      {"halves emulated on a GPU",
       plus("[device]\nkind = \"cuda\"\ndtype = \"bf16\"\nemulate_halves = true\n"),
       {"@23:1", "device.kind = \"auto\" or \"onednn\""}},
      {"TF32 on the reference", plus("[device]\nkind = \"reference\"\ntf32 = true\n"), {"@22:1", "or \"cuda\""}},
      {"TF32 of halves",
       plus("[device]\nkind = \"onednn\"\ndtype = \"bf16\"\ntf32 = true\n"),
       {"@23:1", "dtype = \"f32\""}},
      {"loss scale between powers", plus("[device]\nloss_scale = 1000\n"), {"@21:1", "nearest valid: 512 or 1024"}},
      {"pace of another device", plus("[device]\npaced_gflops = 3\n"), {"@21:1", "device.kind = \"paced\""}},
      {"a pace without ops", plus("[device]\nkind = \"paced\"\npace_ms = 9\n"), {"@22:1", "or \"onednn\""}},
      {"factors of no pace", plus("[device]\npace_factors = [1, 4]\n"), {"@21:1", "device.pace_ms"}},
      {"a pace below zero", plus("[device]\npace_ms = -0.5\n"), {"@21:1", "nearest valid: 0 (off), -1"}},
  };
  return all;
}

}  // namespace echelon::test
