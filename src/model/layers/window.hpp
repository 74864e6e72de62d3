// SPDX-License-Identifier: Apache-2.0
// Keys [rows, columns] and output extents of convolution and pooling.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

struct RowsColumns {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::string text() const;  // "3x3"
  friend bool operator==(const RowsColumns&, const RowsColumns&) = default;
};

// The value of a key: one number for both, or [rows, columns]; `missing` if the key is not given. ConfigError with the
// key's name for more than two numbers and for a number below `least`.
RowsColumns rows_columns(const std::vector<std::int64_t>& values, RowsColumns missing, std::int64_t least,
                         std::string_view key);
// Does the same for a key that must be given and be at least 1.
RowsColumns required_rows_columns(const std::vector<std::int64_t>& values, std::string_view key);

// ConfigError unless the input is an image (C, H, W); `what` names the layer.
void require_image(const Shape& input, std::string_view what);

struct Window {
  RowsColumns kernel, stride, padding{0, 0}, dilation;
};
// (channels, P, Q) for an image (C, H, W), where P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1 rounded down,
// and Q accordingly. ConfigError with the extent and the nearest one that fits if the window exceeds the padded image.
Shape slide(const Window& window, const Shape& input, std::int64_t channels);
// The rows that the window reads (LayerSplit::row_window).
RowWindow rows_of(const Window& window);
// "3x3 stride 2 pad 1"; a stride of `usual_stride`, no padding and no dilation are left out.
std::string window_text(const Window& window, RowsColumns usual_stride);

}  // namespace echelon::inline model
