// SPDX-License-Identifier: Apache-2.0
// Codecs of cuda/ compared with the host's: messages, residuals and decoded values, bit for bit.
#include <catch2/catch.hpp>

#include "tests/cuda_on_cpu/blocks.hpp"
#include "tests/cuda_on_cpu/device.hpp"
#include "tests/support/codec_pair.hpp"
#include "tests/support/random.hpp"

using namespace echelon;
using namespace echelon::test;

TEST_CASE("codecs of cuda/ write, owe and read what the host's do", "[cuda_on_cpu][codec]") {
  on_cpu::vary_order(test_seed());
  const auto device = on_cpu::make_device();
  for (const std::string& name : codec_names()) {
    if (!codec_info(name).lossy) continue;
    for (const std::int64_t n : {1, 9, 513, 6007})
      for (const double tau : {0.0, 0.3}) {
        if (tau > 0 && name != "threshold") continue;
        const double density = n == 6007 ? 0.05 : 0.9;
        check_device_codec(*device, name, n, {.ranks = 3, .density = density, .tau = tau, .index_coding = "raw"});
      }
  }
  const std::vector<CodedRun> rows = {{3, 0}, {9 * 25, 25}, {40, 0}, {2 * 5000, 5000}, {300 * 16, 16}};
  for (const int parts : {1, 3})
    check_device_codec(*device, "onebit", 3 + 9 * 25 + 40 + 2 * 5000 + 300 * 16, {.ranks = 3, .rows = rows}, parts);
}
