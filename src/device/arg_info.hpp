// SPDX-License-Identifier: Apache-2.0
// An argument of an op: its name in the family's header (device/ops/), direction, shape and dtype.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace echelon::inline device {

// The largest number of tensor arguments of an op, inputs and outputs together.
inline constexpr int kMaxArgs = 20;

enum class ArgRole : std::uint8_t { input, output };

struct ArgInfo {
  std::string_view name;  // points to a literal
  ArgRole role;
  Shape shape;
  DType dtype;
  bool adds = false;       // output that honours OpArgs::accumulate
  bool in_part = false;    // output of which the op writes one step only
  bool parameter = false;  // a weight (input) that changes only with OpArgs::parameter_version
  bool movable = false;    // an activation that may have a layout other than plain
};

// Index of the argument of this name; -1 if there is none. O(number of arguments).
int argument_index(const std::vector<ArgInfo>& args, std::string_view name);

}  // namespace echelon::inline device
