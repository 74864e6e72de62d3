// SPDX-License-Identifier: Apache-2.0
#include "device/upload.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "tests/support/discrete_device.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr std::size_t kElems = 37;

// Uploads micro-batch after micro-batch into the same input and returns the sum of all values that the ops saw. The
// host's memory is overwritten as soon as put() returns.
std::vector<double> sum_of_batches(Device& device, int batches) {
  Upload upload(device, 2 * kElems * sizeof(double));
  const Memory input = device.allocate(kElems * sizeof(double), "input");
  const Memory other = device.allocate(kElems * sizeof(double), "other input");
  const Memory sum = device.allocate(kElems * sizeof(double), "sum");
  std::vector<double> host(kElems);
  for (int batch = 0; batch < batches; ++batch) {
    upload.begin();
    for (const Memory* to : {&input, &other}) {
      for (std::size_t i = 0; i < kElems; ++i) host[i] = 1000.0 * batch + static_cast<double>(i) + (to == &input);
      upload.put(to->data(), host.data(), to->bytes());
    }
    upload.end();
    std::fill(host.begin(), host.end(), -1e9);
    device.vector_ops().add(DType::f64, sum.data(), input.data(), kElems);
    device.vector_ops().add(DType::f64, sum.data(), other.data(), kElems);
  }
  device.to_host(host.data(), sum.data(), sum.bytes());
  return host;
}

TEST_CASE("uploads reach the ops of their own micro-batch, whatever the device is late with", "[device]") {
  const auto host = open_device("reference", {});
  const std::vector<double> right = sum_of_batches(*host, 9);
  CHECK(right[5] == 2 * (1000.0 * 36 + 9 * 5) + 9);
  for (int round = 0; round < 40; ++round) CHECK(sum_of_batches(*make_discrete_device(), 9) == right);
}

TEST_CASE("uploads hold two batches on a device of its own, and nothing on the host", "[device]") {
  const auto host = open_device("reference", {}), far = make_discrete_device();
  CHECK(Upload(*host, 1000).device_bytes() == 0);
  const std::size_t before = far->allocated_bytes();
  const Upload upload(*far, 1000);
  CHECK(upload.device_bytes() >= 2000);
  CHECK(far->allocated_bytes() - before >= upload.device_bytes());
}

}  // namespace
}  // namespace echelon
