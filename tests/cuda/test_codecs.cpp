// SPDX-License-Identifier: Apache-2.0
// Codecs on a real GPU compared with the host's: messages, residuals and decoded values, bit for bit.
#include <catch2/catch.hpp>

#include "tests/cuda/gpu.hpp"
#include "tests/support/codec_pair.hpp"

using namespace echelon;
using namespace echelon::test;

TEST_CASE("codecs on the device write, owe and read what the host's do", "[cuda][codec]") {
  if (without_gpu()) return;
  const auto device = open_device("cuda", {});
  for (const std::string& name : codec_names()) {
    if (!codec_info(name).lossy) continue;
    for (const std::int64_t n : {1, 9, 511, 513, 2047, 2050, 6007, 300001, 3000001})
      for (const double tau : {0.0, 0.3, 1e-4}) {
        if (tau > 0 && name != "threshold") continue;
        for (const double density : {0.05, 0.9}) {
          check_device_codec(*device, name, n, {.ranks = 3, .density = density, .tau = tau, .index_coding = "raw"});
        }
      }
  }
  const std::vector<CodedRun> rows = {{3, 0}, {9 * 25, 25}, {40, 0}, {2 * 5000, 5000}, {300 * 16, 16}};
  for (const int parts : {1, 3})
    check_device_codec(*device, "onebit", 3 + 9 * 25 + 40 + 2 * 5000 + 300 * 16, {.ranks = 3, .rows = rows}, parts);
}

TEST_CASE("what loses nothing stays with the host", "[cuda][codec]") {
  if (without_gpu()) return;
  const auto device = open_device("cuda", {});
  const DeviceCodecSpec spec{.name = "lossless", .parts = {{.begin = 0, .elems = 8, .at = 64, .bytes = 32}}};
  CHECK(device->make_codec(spec) == nullptr);
}
