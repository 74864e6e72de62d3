// SPDX-License-Identifier: Apache-2.0
// The arguments, name and cost of an op of given dims. Every family (device/ops/<family>.hpp) fills one in; signature,
// OpSpec::text, flops and traffic_bytes (op_spec.hpp) read it. Light to include: no fmt, so that CUDA kernels can use
// it.
//
//   op.extents({{"N", N}, {"F", F}}).flag(lengths, "lengths");                // text "N4 F17 lengths"
//   op.in("x", {N, F}).in("w", {K, F}).parameter().out("y", {N, K});          // arguments, inputs first
//   op.flops(2.0 * multiply_adds);
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "device/arg_info.hpp"
#include "device/layout.hpp"

namespace echelon::inline device {

class OpDescription {
 public:
  using Value = std::variant<std::int64_t, double, std::string>;
  using Layouts = std::array<Layout, kMaxArgs>;

  // The dtype and layouts are those of the spec.
  OpDescription(DType dtype, const Layouts& layouts) : dtype_(dtype), layouts_(layouts) {}

  DType dtype() const { return dtype_; }
  Layout layout(std::size_t argument) const { return layouts_[argument]; }

  // A condition on the dims. If it does not hold, throws Error (a defect) with `otherwise`, whose {} are replaced by
  // `values`.
  OpDescription& require(bool holds, std::string_view otherwise, std::initializer_list<Value> values = {},
                         std::source_location where = std::source_location::current());

  // Arguments in order, inputs first, of the spec's dtype unless another one is given. The calls after in() or out()
  // set properties of that argument (ArgInfo).
  OpDescription& in(std::string_view name, const Shape& shape) { return put(name, ArgRole::input, shape, dtype_); }
  OpDescription& in(std::string_view name, const Shape& shape, DType dtype) {
    return put(name, ArgRole::input, shape, dtype);
  }
  OpDescription& out(std::string_view name, const Shape& shape) { return put(name, ArgRole::output, shape, dtype_); }
  OpDescription& out(std::string_view name, const Shape& shape, DType dtype) {
    return put(name, ArgRole::output, shape, dtype);
  }
  // The lengths (N) i32 of sequences, if they are given.
  OpDescription& lengths(bool given, std::int64_t N) { return given ? in("lengths", Shape{N}, DType::i32) : *this; }
  OpDescription& in_part() { return args_.back().in_part = true, *this; }
  OpDescription& adds() { return args_.back().adds = true, *this; }
  OpDescription& parameter() { return args_.back().parameter = true, wide(); }
  // f32 if activations are halves: for parameters and their gradients.
  OpDescription& wide() { return args_.back().dtype = wide_of(args_.back().dtype), *this; }
  // Only images (N, C, H, W) and volumes (N, C, D, H, W) have layouts other than plain.
  OpDescription& movable() { return args_.back().movable = args_.back().shape.rank() >= 4, *this; }

  // Words of the text, separated by spaces: "N64 C1", "stride 2", "relu". Flags come after all other words.
  OpDescription& extents(std::initializer_list<std::pair<std::string_view, std::int64_t>> named);
  OpDescription& word(std::string_view text);
  OpDescription& word(std::string_view name, const Value& value);
  OpDescription& flag(bool shown, std::string_view text);
  OpDescription& flag(bool shown, std::string_view name, const Value& value);

  // Sets the cost by formula. Default: one operation per element of the first argument; every argument moved once.
  OpDescription& flops(double flops) { return flops_ = flops, *this; }
  OpDescription& traffic_bytes(double bytes) { return traffic_bytes_ = bytes, *this; }
  // The op reads or writes only one step of a tensor (N, T, ..).
  OpDescription& one_step() { return one_step_ = true, *this; }

  const std::vector<ArgInfo>& args() const { return args_; }
  std::vector<ArgInfo> take_args() { return std::move(args_); }
  std::string text() const;
  double flops() const;
  double traffic_bytes() const;

 private:
  OpDescription& put(std::string_view name, ArgRole role, const Shape& shape, DType dtype) {
    args_.push_back({name, role, shape, dtype});
    return *this;
  }

  DType dtype_;
  Layouts layouts_;
  std::vector<ArgInfo> args_;
  std::string words_, flags_;
  std::optional<double> flops_, traffic_bytes_;
  bool one_step_ = false;
};

}  // namespace echelon::inline device
