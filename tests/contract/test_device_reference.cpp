// SPDX-License-Identifier: Apache-2.0
// Compares the reference device in single precision with itself in double; the suite must also find wrong bodies.
#include <catch2/catch.hpp>

#include "device/host_device.hpp"
#include "device/reference/reference.hpp"
#include "tests/support/device_contract.hpp"
#include "tests/support/far_device.hpp"
#include "tests/support/random.hpp"
#include "tests/support/stored.hpp"

using namespace echelon;
using namespace echelon::test;

TEST_CASE("the reference device keeps the contract of devices", "[device]") {
  const auto device = make_reference_device({});
  for (const std::string& failure : check_device(*device, DType::f32, 2e-6)) FAIL_CHECK(failure);
  for (const std::string& failure : check_device(*device, DType::f64, 1e-14)) FAIL_CHECK(failure);
  SUCCEED();
}

TEST_CASE("a device whose memory faults on the host keeps the contract of memory, vectors and updates", "[device]") {
  const auto device = make_far_device()->beside();
  for (const std::string& failure : check_memory(*device)) FAIL_CHECK(failure);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double tolerance = dtype == DType::f32 ? 2e-6 : 1e-14;
    for (const std::string& failure : check_vector_ops(*device, dtype, tolerance)) FAIL_CHECK(failure);
    for (const std::string& failure : check_updates(*device, dtype, tolerance)) FAIL_CHECK(failure);
  }
  SUCCEED();
}

TEST_CASE("reorder puts every element where its layout says, and zeros into the padding", "[device]") {
  const Shape shape{2, 19, 3, 5};
  const auto values = random_values(static_cast<std::size_t>(shape.elems()), "reorder");
  const auto at = [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
    return values[static_cast<std::size_t>(((n * 19 + c) * 3 + h) * 5 + w)];
  };
  for (std::int64_t block : {8, 16}) {
    const auto layout = block == 8 ? Layout::blocked8 : Layout::blocked16;
    const Bytes stored = to_stored(values, DType::f64, shape, layout);
    const std::int64_t blocks = (19 + block - 1) / block;
    std::vector<double> wanted;
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t b = 0; b < blocks; ++b)
        for (std::int64_t h = 0; h < 3; ++h)
          for (std::int64_t w = 0; w < 5; ++w)
            for (std::int64_t c = b * block; c < (b + 1) * block; ++c) wanted.push_back(c < 19 ? at(n, c, h, w) : 0);
    const Shape flat{static_cast<std::int64_t>(wanted.size())};
    CHECK(from_stored(stored, DType::f64, flat, Layout::plain) == wanted);
    CHECK(from_stored(stored, DType::f64, shape, layout) == values);
  }
  std::vector<double> last;
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t h = 0; h < 3; ++h)
      for (std::int64_t w = 0; w < 5; ++w)
        for (std::int64_t c = 0; c < 19; ++c) last.push_back(at(n, c, h, w));
  const Bytes stored = to_stored(values, DType::f64, shape, Layout::channels_last);
  CHECK(from_stored(stored, DType::f64, Shape{2 * 19 * 15}, Layout::plain) == last);
}

TEST_CASE("the contract notices a kind without a spec", "[device]") {
  std::vector<OpSpec> specs = contract_specs(DType::f32);
  CHECK(kinds_without_spec(specs).empty());
  std::erase_if(specs, [](const OpSpec& spec) { return spec.kind == OpKind::add; });
  CHECK(kinds_without_spec(specs) == std::vector<std::string>{"add"});
}

TEST_CASE("the contract notices a body that is wrong in one way only", "[device]") {
  struct WrongOp final : Op {
    WrongOp(std::unique_ptr<Op> op, int fault) : right(std::move(op)), fault_(fault) {}
    std::size_t saved_bytes() const override { return right->saved_bytes(); }
    std::string implementation() const override { return "wrong"; }
    void run(const OpArgs& args) override {
      OpArgs changed = args;
      if (fault_ == 0) changed.accumulate = 0;
      if (fault_ == 1) changed.accumulate = args.accumulate != 0 ? ~0U : 0;
      right->run(changed);
      if (fault_ == 2) static_cast<float*>(args.tensors[0])[0] += 1;
      if (fault_ == 3) static_cast<float*>(args.tensors[2])[-1] = 1;
      if (fault_ == 4) static_cast<float*>(args.tensors[2])[3] *= 1.01F;
    }
    std::unique_ptr<Op> right;
    int fault_;
  };
  struct WrongDevice final : HostDevice {
    explicit WrongDevice(int fault) : HostDevice({}), fault_(fault) {}
    std::string_view name() const override { return "wrong"; }
    std::string describe() const override { return "wrong"; }
    bool supports(DType) const override { return true; }
    std::unique_ptr<Op> make(const OpSpec& spec) override {
      return std::make_unique<WrongOp>(oracle().make(spec), fault_);
    }
    int fault_;
  };
  const OpSpec spec{OpKind::dense_backward_weights, DType::f32, DenseDims{4, 6, 5}, {}};
  for (int fault = 0; fault < 5; ++fault) {
    WrongDevice device(fault);
    INFO("fault " << fault);
    CHECK_FALSE(check_op(device, spec, 1e-4).ok);
  }
  WrongDevice right(5);
  CHECK(check_op(right, spec, 1e-6).ok);
}
