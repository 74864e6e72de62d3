// SPDX-License-Identifier: Apache-2.0
// Compares ops that do the work of two with the two ops on the same device, bit by bit, also at infinities, NaN and
// both zeros.
#include <catch2/catch.hpp>
#include <limits>

#include "device/onednn/onednn.hpp"
#include "device/reference/reference.hpp"
#include "tests/support/device_contract.hpp"
#include "tests/support/random.hpp"
#include "tests/support/stored.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

// Returns random values that begin with special ones, ordered so that the two tensors hold every pair of them.
std::vector<double> values_of(const Shape& shape, const std::string& name, bool slow) {
  const std::vector<double> odd = {0.0,
                                   -0.0,
                                   0.5,
                                   -0.5,
                                   1e-30,
                                   -1e-30,
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
  std::vector<double> values = random_values(static_cast<std::size_t>(shape.elems()), name);
  for (std::size_t i = 0; i < odd.size() * odd.size(); ++i) values[i] = odd[slow ? i / odd.size() : i % odd.size()];
  return values;
}

class Pair {
 public:
  Pair(Device& device, DType dtype, const Shape& shape) : device_(device), dtype_(dtype), shape_(shape) {}

  Memory memory_of(const std::vector<double>& values) const {
    const Bytes bytes = to_stored(values, dtype_, shape_, Layout::plain);
    Memory memory = device_.allocate(bytes.size(), "values");
    device_.to_device(memory.data(), bytes.data(), bytes.size());
    return memory;
  }
  // The last of `tensors` is the output.
  void run(OpKind kind, const Dims& dims, std::vector<void*> tensors) const {
    const std::unique_ptr<Op> op = device_.make({kind, dtype_, dims, {}});
    const Memory scratch = device_.allocate(op->scratch_bytes(), "scratch");
    OpArgs args;
    args.tensors = tensors.data();
    args.scratch = scratch.data();
    op->run(args);
    device_.synchronize();
  }
  void check() const {
    const ElementwiseDims plain{shape_}, relu{.shape = shape_, .relu = true};
    const ActivationDims cut{shape_};
    const std::vector<double> none(static_cast<std::size_t>(shape_.elems()), 7);
    const Memory a = memory_of(values_of(shape_, "a", false)), b = memory_of(values_of(shape_, "b", true));
    const Memory sum = memory_of(none), apart = memory_of(none), fused = memory_of(none);
    run(OpKind::add, plain, {a.data(), b.data(), sum.data()});
    run(OpKind::activation_forward, cut, {sum.data(), apart.data()});
    run(OpKind::add, relu, {a.data(), b.data(), fused.data()});
    CHECK(bytes_of(fused) == bytes_of(apart));
    CHECK(bytes_of(fused) != bytes_of(sum));

    const Memory mask = memory_of(random_values(none.size(), "mask"));
    run(OpKind::activation_backward, cut, {mask.data(), sum.data(), apart.data()});
    run(OpKind::masked_add, plain, {mask.data(), a.data(), b.data(), fused.data()});
    CHECK(bytes_of(fused) == bytes_of(apart));
    CHECK(bytes_of(fused) != bytes_of(sum));

    // The output may take the place of either input.
    const Memory over = memory_of(values_of(shape_, "a", false));
    run(OpKind::masked_add, plain, {mask.data(), over.data(), b.data(), over.data()});
    CHECK(bytes_of(over) == bytes_of(fused));
    run(OpKind::masked_add, plain, {mask.data(), a.data(), b.data(), mask.data()});
    CHECK(bytes_of(mask) == bytes_of(fused));
  }

 private:
  static Bytes bytes_of(const Memory& memory) { return {memory.bytes_at(0), memory.bytes_at(memory.bytes())}; }

  Device& device_;
  DType dtype_;
  Shape shape_;
};

}  // namespace

TEST_CASE("an add with relu and a masked add have the bits of the two ops apart", "[device][onednn]") {
  const auto check = [](Device& device, DType dtype) {
    for (const Shape& shape : {Shape{2, 17, 5, 3}, Shape{5, 40001}}) {
      CAPTURE(device.describe(), name_of(dtype), shape.text());
      Pair(device, dtype, shape).check();
    }
  };
  const auto reference = make_reference_device({});
  check(*reference, DType::f64);
  check(*reference, DType::f32);
  for (const int threads : {1, 2}) {
    const auto onednn = make_onednn_device({.threads = threads, .emulate_halves = true});
    check(*onednn, DType::f32);
    check(*onednn, DType::bf16);
  }
}
