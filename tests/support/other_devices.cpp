// SPDX-License-Identifier: Apache-2.0
// The test devices by name, for runs of replicas (verify/replicas.hpp).
#include "device/onednn/onednn.hpp"
#include "tests/support/discrete_device.hpp"
#include "tests/support/random_layout_device.hpp"
#include "tests/support/replicas.hpp"

namespace echelon::test {
namespace {

std::unique_ptr<Device> open(const ReplicaRun& run, int rank) {
  if (run.device == "discrete") return make_discrete_device(run.card);
  if (run.device == "random_layout") return make_random_layout_device(1 + static_cast<std::uint64_t>(rank));
  if (run.device == "onednn_halves") return make_onednn_device({.emulate_halves = true});
  return nullptr;
}

const bool set = (open_other_device = &open) != nullptr;

}  // namespace
}  // namespace echelon::test
