// SPDX-License-Identifier: Apache-2.0
// Every op of cuda/ops but recurrent layers, in all dtypes and both layouts, against the f64 reference: overwriting and
// adding, at aligned and unaligned addresses, on memory of exactly the arguments' sizes.
#include <catch2/catch.hpp>

#include "tests/cuda_on_cpu/blocks.hpp"
#include "tests/cuda_on_cpu/device.hpp"
#include "tests/support/device_contract.hpp"
#include "tests/support/random.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

// Whether the op has many blocks, each with its barriers.
bool is_long(const OpSpec& spec) {
  if (spec.kind == OpKind::conv_backward_weights) {
    const auto& d = std::get<ConvDims>(spec.dims);
    return d.weights() > 400;
  }
  const auto* attention = std::get_if<AttentionDims>(&spec.dims);
  return attention && attention->N * attention->heads * attention->T > 200;
}

void check_ops(DType dtype, double tolerance) {
  on_cpu::vary_order(test_seed());
  const auto device = on_cpu::make_device();
  std::vector<OpSpec> specs;
  for (const OpSpec& spec : contract_specs(dtype))
    if (device->has(spec.kind, dtype) && !is_long(spec)) specs.push_back(spec);
  CHECK(specs.size() > 300);
  for (const OpSpec& spec : sampled(specs, specs.size() / 3, name_of(dtype)))
    if (const OpCheck check = check_op(*device, spec, tolerance); !check.ok) FAIL_CHECK(check.message);
}

}  // namespace

TEST_CASE("ops of cuda/ are the reference's in f32", "[cuda_on_cpu][sampled]") { check_ops(DType::f32, 1e-5); }
TEST_CASE("ops of cuda/ are the reference's in f64", "[cuda_on_cpu][sampled]") { check_ops(DType::f64, 1e-12); }
TEST_CASE("ops of cuda/ are the reference's in f16", "[cuda_on_cpu][sampled]") { check_ops(DType::f16, 2e-3); }
TEST_CASE("ops of cuda/ are the reference's in bf16", "[cuda_on_cpu][sampled]") { check_ops(DType::bf16, 2e-2); }

// Part of every run: the work of a warp or a block on rows of any length, and products by arrays of pointers.
TEST_CASE("layer norm and attention of cuda/ are the reference's", "[cuda_on_cpu]") {
  on_cpu::vary_order(test_seed());
  const auto device = on_cpu::make_device();
  for (const auto& [dtype, tolerance] :
       {std::pair{DType::f32, 1e-5}, {DType::f64, 1e-12}, {DType::f16, 2e-3}, {DType::bf16, 2e-2}})
    for (const OpSpec& spec : contract_specs(dtype)) {
      if (!std::holds_alternative<LayerNormDims>(spec.dims) && !std::holds_alternative<AttentionDims>(spec.dims))
        continue;
      if (is_long(spec)) continue;
      if (const OpCheck check = check_op(*device, spec, tolerance); !check.ok) FAIL_CHECK(check.message);
    }
  SUCCEED();
}

TEST_CASE("updates of cuda/ are the reference's", "[cuda_on_cpu]") {
  on_cpu::vary_order(test_seed());
  const auto device = on_cpu::make_device();
  for (const std::string& failure : check_updates(*device, DType::f32, 1e-5)) FAIL_CHECK(failure);
  for (const std::string& failure : check_updates(*device, DType::f64, 1e-12)) FAIL_CHECK(failure);
  for (const std::string& failure : check_memory(*device)) FAIL_CHECK(failure);
  SUCCEED();
}

// Hundreds of sums for each size; test_kernels.cpp has the short form.
TEST_CASE("vector operations of cuda/ keep the contract", "[.][cuda_on_cpu][soak]") {
  on_cpu::vary_order(test_seed());
  const auto device = on_cpu::make_device();
  for (const std::string& failure : check_vector_ops(*device, DType::f32, 1e-5)) FAIL_CHECK(failure);
  for (const std::string& failure : check_vector_ops(*device, DType::f64, 1e-12)) FAIL_CHECK(failure);
  SUCCEED();
}
