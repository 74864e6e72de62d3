// What every device promises, checked against the f64 reference. A device's own test only loops:
//
//   for (const OpSpec& spec : contract_specs(DType::f32)) {
//     const OpCheck check = check_op(*device, spec, 1e-5);
//     INFO(check.message); CHECK(check.ok);
//   }
//   CHECK(kinds_without_spec(contract_specs(DType::f32)).empty());
//
// or, at once: `for (const std::string& failure : check_device(*device, DType::f32, 1e-5)) FAIL_CHECK(failure);`
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

namespace echelon::verify {

// The rows of every family (device_cases.hpp), in the order of device/ops/list.hpp.
std::vector<OpSpec> contract_specs(DType dtype);
// Recurrent layers on chunks of sequences of unlike lengths; no part of the table, as CUDA refuses them.
std::vector<OpSpec> chunk_specs(DType dtype);
// Kinds of which `specs` has no row.
std::vector<std::string> kinds_without_spec(const std::vector<OpSpec>& specs);

struct OpCheck {
  bool ok = true;
  std::string message;         // what went wrong, where, in which layouts; the seed that repeats it
  std::string implementation;  // of the last body that ran
  double worst = 0;            // largest distance of an output, relative to its largest value
};

// Builds the op in plain layouts and in every layout that the device wishes for, and runs each several times with new
// random arguments, overwriting and adding, at aligned and unaligned addresses of the arena's tensors. An output passes
// when max|out - ref| <= tolerance * max|ref| (or of the size usual for its number of terms, where they cancel; times
// OpCases::half_tolerance in halves), its blocked padding is zero, and nothing beside the outputs has changed. A
// backward op that reads `saved` follows a run of its forward twin.
OpCheck check_op(Device& device, const OpSpec& spec, double tolerance);

// Every rule of update_rules/list.hpp over several steps and odd sizes; empty where all is well.
std::vector<std::string> check_updates(Device& device, DType dtype, double tolerance);
// VectorOps: against plain sums, at unaligned addresses, with inf and NaN where that matters.
std::vector<std::string> check_vector_ops(Device& device, DType dtype, double tolerance);
// Zero-filled, aligned, counted, given back; copies and events.
std::vector<std::string> check_memory(Device& device);

// All of the above over the whole table; in halves the ops that the device has (Device::has), and reorders from and to
// f32.
std::vector<std::string> check_device(Device& device, DType dtype, double tolerance);

}  // namespace echelon::verify
