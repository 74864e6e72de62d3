// An argument of an op, as op_spec.hpp's table has them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace echelon::inline device {

enum class ArgRole : std::uint8_t { input, output };

struct ArgInfo {
  std::string_view name;  // as in the table above
  ArgRole role;
  Shape shape;
  DType dtype;
  bool adds = false;       // output that honours OpArgs::accumulate
  bool in_part = false;    // output of which the op writes one step, and leaves the others as they are
  bool parameter = false;  // a weight (input) that changes only with OpArgs::parameter_version
  bool movable = false;    // an activation that may have a layout other than plain
};

// Where the argument of this name stands; -1 where there is none.
int place_of(const std::vector<ArgInfo>& args, std::string_view name);

}  // namespace echelon::inline device
