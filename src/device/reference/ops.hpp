// SPDX-License-Identifier: Apache-2.0
// The families of the reference device, and helpers of their loops.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "device/op.hpp"

namespace echelon::inline device::reference {

// make_conv(spec), make_pool(spec), ..: one for each family of device/ops/list.hpp. The spec must be of that family
// with a valid signature; the dtype is f32 or f64.
#define F(family, family_dims, kinds) std::unique_ptr<Op> make_##family(const OpSpec& spec);
ECHELON_OP_FAMILIES(F)
#undef F

// An op that is one loop over its arguments.
using Loop = std::function<void(const OpArgs&)>;
class LoopOp final : public Op {
 public:
  explicit LoopOp(Loop loop, std::size_t saved_bytes) : loop_(std::move(loop)), saved_bytes_(saved_bytes) {}
  std::size_t saved_bytes() const override { return saved_bytes_; }
  std::string implementation() const override { return "plain loop"; }
  void run(const OpArgs& args) override { loop_(args); }

 private:
  Loop loop_;
  std::size_t saved_bytes_;
};
inline std::unique_ptr<Op> loop_op(Loop loop, std::size_t saved_bytes = 0) {
  return std::make_unique<LoopOp>(std::move(loop), saved_bytes);
}

// Argument `a` of the signature.
template <class T>
const T* in(const OpArgs& args, int a) {
  return static_cast<const T*>(args.tensors[a]);
}

// An output, and whether it is overwritten or added to.
template <class T>
class Output {
 public:
  Output(const OpArgs& args, int a)
      : data_(static_cast<T*>(args.tensors[a])), adds_((args.accumulate >> a & 1U) != 0) {}
  void put(std::int64_t i, double value) const {
    data_[i] = static_cast<T>(adds_ ? static_cast<double>(data_[i]) + value : value);
  }

 private:
  T* data_;
  bool adds_;
};

// The outputs [begin, end) along one axis whose window cell at `reach` (= dilation * cell) is inside the image.
struct Inside {
  std::int64_t begin, end;
};
inline Inside outputs_inside(std::int64_t extent, std::int64_t outputs, std::int64_t stride, std::int64_t pad,
                             std::int64_t reach) {
  const auto ceil_div = [&](std::int64_t value) { return value <= 0 ? 0 : (value + stride - 1) / stride; };
  const std::int64_t end = ceil_div(extent + pad - reach);
  return {ceil_div(pad - reach), end < outputs ? end : outputs};
}

[[noreturn]] inline void not_of_family(const OpSpec& spec) {
  check_failed(__FILE__, __LINE__, "the kind must belong to the family", {}, spec.text());
}

}  // namespace echelon::inline device::reference
