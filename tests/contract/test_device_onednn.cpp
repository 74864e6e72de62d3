// SPDX-License-Identifier: Apache-2.0
// Compares the CPU fast path with the reference device, in every layout, on one thread and on two.
//
// Tolerance: 1e-5 of an output's largest value. The longest sums of the suite have a few thousand terms, whose f32
// rounding in another order stays near 1e-6; a wrong index or a forgotten term shows at 1e-2.
#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.hpp"
#include "device/onednn/onednn.hpp"
#include "tests/support/device_contract.hpp"
#include "tests/support/fallback.hpp"
#include "tests/support/random.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/wishing_device.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

DeviceOptions with_threads(int threads) {
  DeviceOptions options;
  options.threads = threads;
  return options;
}

std::vector<std::byte> bytes_of(const Memory& memory) { return {memory.bytes_at(0), memory.bytes_at(memory.bytes())}; }

// Returns the outputs of one run of `spec` on `device` as bytes; the arguments depend on `seed` alone.
std::vector<std::vector<std::byte>> outputs_of(Device& device, const OpSpec& spec, std::uint64_t seed) {
  const std::unique_ptr<Op> op = device.make(spec);
  const HashRng rng(seed, "arguments");
  std::vector<Memory> tensors;
  std::vector<void*> addresses;
  std::uint64_t draw = 0;
  for (const ArgInfo& arg : signature(spec)) {
    tensors.push_back(device.allocate(static_cast<std::size_t>(arg.shape.elems()) * size_of(arg.dtype), arg.name));
    addresses.push_back(tensors.back().data());
    auto* values = static_cast<float*>(tensors.back().data());
    for (std::int64_t i = 0; i < arg.shape.elems() && arg.dtype == DType::f32; ++i)
      values[i] = static_cast<float>(rng.uniform(draw++)) - 0.5f;
  }
  const Memory saved = device.allocate(op->saved_bytes(), "saved"), scratch = device.allocate(op->scratch_bytes(), "s");
  OpArgs args;
  args.tensors = addresses.data();
  args.saved = saved.data();
  args.scratch = scratch.data();
  op->run(args);
  std::vector<std::vector<std::byte>> outputs;
  const std::vector<ArgInfo> infos = signature(spec);
  for (std::size_t a = 0; a < infos.size(); ++a)
    if (infos[a].role == ArgRole::output) outputs.push_back(bytes_of(tensors[a]));
  return outputs;
}

}  // namespace

TEST_CASE("onednn keeps the contract of devices", "[device][onednn]") {
  const int threads = GENERATE(1, 2);
  const auto device = make_onednn_device(with_threads(threads));
  CAPTURE(device->describe());
  for (const std::string& failure : check_device(*device, DType::f32, 1e-5)) FAIL_CHECK(failure);
  for (const OpSpec& spec : chunk_specs(DType::f32)) {
    const OpCheck check = check_op(*device, spec, 1e-5);
    INFO(check.message);
    CHECK(check.ok);
  }
}

TEST_CASE("onednn ops are right in layouts that this machine would not choose", "[device][onednn]") {
  const auto device = make_onednn_device(with_threads(1));
  for (Layout layout : {Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
    WishingDevice wishing(*device, layout);
    for (const OpSpec& spec : contract_specs(DType::f32)) {
      const OpCheck check = check_op(wishing, spec, 1e-5);
      INFO(check.message);
      CHECK(check.ok);
    }
  }
}

TEST_CASE("no op of onednn falls back to an unoptimised body", "[device][onednn]") {
  if (skip_without(kLibraryOptimisesAll, Lacks::processor, "oneDNN optimises every op on x86-64 alone")) return;
  const auto device = make_onednn_device(with_threads(1));
  for (OpSpec spec : contract_specs(DType::f32)) {
    for (int round = 0; round < 2; ++round) {
      const std::string implementation = device->make(spec)->implementation();
      CAPTURE(spec.text(), implementation);
      CHECK_FALSE(falls_back(implementation));
      spec.layouts = device->layouts(spec).layouts;
    }
  }
}

TEST_CASE("onednn gives the same bits again at the same number of threads", "[device][onednn]") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  const OpSpec weights{OpKind::conv_backward_weights, DType::f32, ConvDims{16, 16, {14, 14}, 32, {3, 3}, {}, {1, 1}}};
  const OpSpec dense{OpKind::dense_backward_weights, DType::f32, DenseDims{64, 300, 50}};
  const OpSpec norm{OpKind::norm_moments, DType::f32, NormDims{16, 16, 14, 14}};
  const OpSpec rnn{OpKind::rnn_forward, DType::f32, RnnDims{.N = 17, .T = 4, .F = 5, .H = 200}};
  for (const OpSpec& spec : {weights, dense, norm, rnn}) {
    CAPTURE(spec.text());
    for (int threads : {1, 2}) {
      const auto device = make_onednn_device(with_threads(threads));
      const auto first = outputs_of(*device, spec, seed);
      for (int again = 0; again < 3; ++again) CHECK(outputs_of(*device, spec, seed) == first);
    }
  }
  const auto one = make_onednn_device(with_threads(1)), two = make_onednn_device(with_threads(2));
  CHECK(outputs_of(*one, norm, seed) == outputs_of(*two, norm, seed));  // batch norm adds in the same order
}

TEST_CASE("onednn packs weights anew when the parameters' version changes", "[device][onednn]") {
  const auto device = make_onednn_device(with_threads(1));
  const HashRng rng(test_seed(), "weights");
  for (OpKind kind : {OpKind::conv_forward, OpKind::conv_backward_data}) {
    OpSpec spec{kind, DType::f32, ConvDims{1, 16, {5, 5}, 16, {3, 3}, {}, {1, 1}, {}, 1, false}};
    spec.layouts = device->layouts(spec).layouts;
    const std::unique_ptr<Op> op = device->make(spec);
    const std::size_t elems = 16 * 5 * 5, weights = 16 * 16 * 9;
    const Memory from = device->allocate(elems * 4, "from"), w = device->allocate(weights * 4, "w"),
                 to = device->allocate(elems * 4, "to"), scratch = device->allocate(op->scratch_bytes(), "scratch");
    for (std::size_t i = 0; i < elems; ++i) static_cast<float*>(from.data())[i] = static_cast<float>(rng.uniform(i));
    void* tensors[] = {from.data(), w.data(), to.data()};
    OpArgs args;
    args.tensors = tensors;
    args.scratch = scratch.data();
    for (std::uint64_t version = 1; version <= 3; ++version) {
      CAPTURE(spec.text(), version);
      for (std::size_t i = 0; i < weights; ++i)
        static_cast<float*>(w.data())[i] = static_cast<float>(rng.at(version).uniform(i));
      args.parameter_version = version;
      op->run(args);
      const std::vector<std::byte> again = bytes_of(to);
      device->make(spec)->run(args);
      CHECK(again == bytes_of(to));
    }
  }
}

TEST_CASE("onednn refuses f64 and says what computes it", "[device][onednn]") {
  const auto device = make_onednn_device(with_threads(1));
  CHECK_FALSE(device->supports(DType::f64));
  CHECK_THROWS_WITH(device->make({OpKind::add, DType::f64, ElementwiseDims{Shape{4}}}), Catch::Contains("reference"));
}
