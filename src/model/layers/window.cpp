// SPDX-License-Identifier: Apache-2.0
#include "model/layers/window.hpp"

#include <fmt/format.h>

#include "base/dims.hpp"
#include "base/error.hpp"

namespace echelon::inline model {
namespace {

std::int64_t extent_of(const char* axis, std::int64_t extent, std::int64_t size, std::int64_t stride, std::int64_t pad,
                       std::int64_t dilation) {
  const std::int64_t out = window_extent(extent, size, stride, pad, dilation);
  if (out > 0) return out;
  const std::int64_t reach = dilation * (size - 1) + 1;
  const std::int64_t padded = extent + 2 * pad;
  throw ConfigError(fmt::format(
      "the window covers {} {}, but the padded input has only {} ({} + 2 x {}); use a kernel of at most {} or a "
      "padding of at least {}",
      reach, axis, padded, extent, pad, (padded - 1) / dilation + 1, (reach - extent + 1) / 2));
}

}  // namespace

std::string RowsColumns::text() const { return fmt::format("{}x{}", rows, columns); }

RowsColumns rows_columns(const std::vector<std::int64_t>& values, RowsColumns missing, std::int64_t least,
                         std::string_view key) {
  if (values.empty()) return missing;
  if (values.size() > 2)
    throw ConfigError(fmt::format("{} has {} numbers, but takes one number or [rows, columns]", key, values.size()));
  for (std::int64_t value : values)
    if (value < least) throw ConfigError(fmt::format("{} = {} must be at least {}", key, value, least));
  return {values.front(), values.back()};
}

RowsColumns required_rows_columns(const std::vector<std::int64_t>& values, std::string_view key) {
  if (values.empty())
    throw ConfigError(fmt::format("the layer needs the key {}, one number or [rows, columns], e.g. {} = 3", key, key));
  return rows_columns(values, {}, 1, key);
}

void require_image(const Shape& input, std::string_view what) {
  if (input.rank() == 3) return;
  throw ConfigError(fmt::format("{} takes images (channels, rows, columns), but its input is {}", what, input.text()));
}

Shape slide(const Window& w, const Shape& input, std::int64_t channels) {
  return {channels, extent_of("rows", input[1], w.kernel.rows, w.stride.rows, w.padding.rows, w.dilation.rows),
          extent_of("columns", input[2], w.kernel.columns, w.stride.columns, w.padding.columns, w.dilation.columns)};
}

RowWindow rows_of(const Window& w) {
  return {.reach = w.dilation.rows * (w.kernel.rows - 1) + 1, .stride = w.stride.rows, .padding = w.padding.rows};
}

std::string window_text(const Window& w, RowsColumns usual_stride) {
  const auto both = [](RowsColumns v) { return v.rows == v.columns ? std::to_string(v.rows) : v.text(); };
  std::string text = w.kernel.text();
  if (!(w.stride == usual_stride)) text += " stride " + both(w.stride);
  if (!(w.padding == RowsColumns{0, 0})) text += " pad " + both(w.padding);
  if (!(w.dilation == RowsColumns{1, 1})) text += " dilation " + both(w.dilation);
  return text;
}

}  // namespace echelon::inline model
