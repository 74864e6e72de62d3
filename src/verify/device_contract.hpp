// SPDX-License-Identifier: Apache-2.0
// The contract of every device, checked against the f64 reference. A device's own test is only a loop:
//
//   for (const OpSpec& spec : contract_specs(DType::f32)) {
//     const OpCheck check = check_op(*device, spec, 1e-5);
//     INFO(check.message); CHECK(check.ok);
//   }
//   CHECK(kinds_without_spec(contract_specs(DType::f32)).empty());
//
// or, in one call: `for (const std::string& failure : check_device(*device, DType::f32, 1e-5)) FAIL_CHECK(failure);`
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace echelon::verify {

// Returns the specs of every family (device_cases.hpp), in the order of device/ops/list.hpp.
std::vector<OpSpec> contract_specs(DType dtype);
// Recurrent layers on chunks of sequences of different lengths; not in the table, because CUDA refuses them.
std::vector<OpSpec> chunk_specs(DType dtype);
// Returns the kinds that have no spec in `specs`.
std::vector<std::string> kinds_without_spec(const std::vector<OpSpec>& specs);

struct OpCheck {
  bool ok = true;
  std::string message;         // the failure, its place and layouts, and the seed that repeats it
  std::string implementation;  // name of the last implementation that ran
  double worst = 0;            // largest error of an output, relative to its largest value
};

// Builds the op in plain layouts and in every layout that the device prefers. Runs each several times with new random
// arguments, overwriting and adding, at aligned and unaligned addresses of the arena's tensors. An output passes if
// max|out - ref| <= tolerance * max|ref| (or * the size usual for its number of terms, where they cancel; times
// OpCases::half_tolerance for halves), its blocked padding is zero, and nothing besides the outputs has changed. A
// backward op that reads `saved` runs after its forward twin. Inputs are rounded to `operands` (default: the type of
// the spec), for a device that rounds operands to it: its outputs are then those of exact products.
OpCheck check_op(Device& device, const OpSpec& spec, double tolerance, std::optional<DType> operands = {});

// Checks every rule of update_rules/list.hpp over several steps and odd sizes. Returns the failures.
std::vector<std::string> check_updates(Device& device, DType dtype, double tolerance);
// Checks VectorOps against plain sums, at unaligned addresses, with inf and NaN where they matter.
std::vector<std::string> check_vector_ops(Device& device, DType dtype, double tolerance);
// Checks that memory is zero-filled, aligned, counted and freed; checks copies and events.
std::vector<std::string> check_memory(Device& device);

// Runs all of the above over the whole table. For halves it runs only the ops that the device has (Device::has), and
// reorders from and to f32.
std::vector<std::string> check_device(Device& device, DType dtype, double tolerance);

}  // namespace echelon::verify
