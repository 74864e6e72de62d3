// What convolution and pooling share: [rows, columns] keys and the fit of a window.
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

// One number for both, or [rows, columns]; `missing` where the key is not given. ConfigError below `least`.
RowsColumns rows_columns(const std::vector<std::int64_t>& values, RowsColumns missing, std::int64_t least,
                         std::string_view key);
// As above for a key that must be given.
RowsColumns required_rows_columns(const std::vector<std::int64_t>& values, std::string_view key);

// Refuses inputs that are no images (C, H, W).
void require_image(const Shape& input, std::string_view what);

struct Window {
  RowsColumns kernel, stride, padding{0, 0}, dilation;
};
// (channels, P, Q) for an image (C, H, W). ConfigError where the window is larger than the padded image, saying which
// extent and what would fit.
Shape slide(const Window& window, const Shape& input, std::int64_t channels);
// What it sees of rows.
RowWindow rows_of(const Window& window);
// "3x3 stride 2 pad 1", leaving out what is usual.
std::string window_text(const Window& window, RowsColumns usual_stride);

}  // namespace echelon::inline model
