// SPDX-License-Identifier: Apache-2.0
// The device that an experiment takes, by its keys of [device].
#include "model/device_options.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/processor.hpp"
#include "config/parse.hpp"
#include "device/device.hpp"
#include "device/onednn/onednn.hpp"
#include "tests/support/bad_configs.hpp"

namespace echelon {
namespace {

DeviceConfig of(const std::vector<std::string>& sets) {
  return parse_config(test::good_config(), "a.toml", sets).device;
}

}  // namespace

TEST_CASE("device.kind = auto in halves takes a device that computes them", "[device][halves]") {
  const bool emulated = GENERATE(true, false);
  const DType half = GENERATE(DType::bf16, DType::f16);
  const DeviceConfig device = of({"device.kind=auto", "device.dtype=" + std::string(name_of(half)),
                                  std::string("device.emulate_halves=") + (emulated ? "true" : "false")});
  if (visible_gpus() == 0 && !emulated && !multiplies_halves(half)) {
    CHECK_THROWS_AS(device_options(device, 1), EnvironmentError);
    CHECK_THROWS_WITH(device_options(device, 1),
                      Catch::Contains(half == DType::bf16 ? "AVX512_BF16" : "AMX_FP16 and oneDNN 3"));
    return;
  }
  const auto opened = open_device(device.kind, device_options(device, 1));
  CHECK(opened->supports(half));
  CHECK(opened->has(OpKind::rnn_forward, half));
}

TEST_CASE("device.tf32 of a processor: products of bf16 where it has them, else it is refused", "[device][halves]") {
  for (const char* kind : {"onednn", "auto"}) {
    const DeviceConfig device = of({std::string("device.kind=") + kind, "device.tf32=true"});
    if (means_gpu(kind)) continue;
    if (!multiplies_bf16()) {
      CHECK_THROWS_WITH(device_options(device, 1), Catch::Contains("AVX512_BF16"));
      continue;
    }
    const auto opened = open_device(device.kind, device_options(device, 1));
    CHECK((opened->describe().find("products of f32 in bf16") != std::string::npos) == multiplies_bf16());
    CHECK(opened->supports(DType::f32));
  }
}

}  // namespace echelon
