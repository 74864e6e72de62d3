// SPDX-License-Identifier: Apache-2.0
#include "device/peak_rate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace echelon::inline device {

namespace {

// Returns the seconds of the fastest product of side x side matrices, of at least five and of all that fit into 40 ms:
// a virtual machine may lose its core for 10 ms. Throws MemoryError.
double product_s(Device& device, const OpSpec& spec, std::int64_t side, DType stored) {
  const std::unique_ptr<Op> op = device.make(spec);
  const std::size_t bytes = static_cast<std::size_t>(side * side) * size_of(stored);
  const Memory x = device.allocate(bytes, "peak"), w = device.allocate(bytes, "peak"),
               y = device.allocate(bytes, "peak"), scratch = device.allocate(op->scratch_bytes(), "peak");
  void* tensors[] = {x.data(), w.data(), y.data()};
  OpArgs args;
  args.tensors = tensors;
  args.scratch = scratch.data();
  double fastest = 1e30;
  const double begin = now_s();
  for (int round = 0; round < 5 || now_s() < begin + 0.04; ++round) {
    device.synchronize();
    const double start = now_s();
    op->run(args);
    device.synchronize();
    fastest = std::min(fastest, now_s() - start);
  }
  return fastest;
}

}  // namespace

double peak_flops(Device& device, DType activations, DType stored) {
  double best = std::numeric_limits<double>::quiet_NaN();
  const std::int64_t largest = device.on_host() ? 1024 : 8192;  // a GPU needs larger sizes to be busy
  for (std::int64_t side = 128; side <= largest; side *= 2) try {
      const OpSpec spec{OpKind::dense_forward, activations, DenseDims{side, side, side, false}};
      const double seconds = product_s(device, spec, side, stored);
      best = std::fmax(best, flops(spec) / seconds);
      if (seconds > 0.05) break;  // a slow device (reference) reaches its rate at small sizes already
    } catch (const MemoryError&) {
      break;
    }
  return best;
}

double memory_bytes_per_s(Device& device, DType stored) {
  const std::size_t n = device.on_host() ? std::size_t{4} << 20 : std::size_t{64} << 20;
  const Memory to = device.allocate(n * size_of(stored), "peak"), from = device.allocate(n * size_of(stored), "peak");
  double fastest = 1e30;
  for (int round = 0; round < 4; ++round) {
    device.synchronize();
    const double start = now_s();
    device.vector_ops().axpy(stored, to.data(), 1.0, from.data(), n);
    device.synchronize();
    fastest = std::min(fastest, now_s() - start);
  }
  return 3 * static_cast<double>(n * size_of(stored)) / fastest;
}

}  // namespace echelon::inline device
