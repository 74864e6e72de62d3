// SPDX-License-Identifier: Apache-2.0
// A view of device memory as a tensor: address, shape, dtype, layout. It owns nothing and is free to copy.
#pragma once

#include <cstddef>

#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "device/layout.hpp"

namespace echelon::inline device {

struct Tensor {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;
  Layout layout = Layout::plain;

  std::int64_t elems() const { return shape.elems(); }
  std::size_t bytes() const { return static_cast<std::size_t>(stored_elems(shape, layout)) * size_of(dtype); }
};

}  // namespace echelon::inline device
