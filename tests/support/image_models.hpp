// SPDX-License-Identifier: Apache-2.0
// Small models of images that are taller than wide, for tests of splits by rows.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/replicas.hpp"

namespace echelon::test {

Graph small_inception();  // branches with several windows and pools, joined by channels; batch norm, dropout
Graph small_windows();    // strides, dilation, groups, odd heights, overlapping pools; some windows without padding
// Two layers that read one value and prefer its rows cut in different places.
Graph small_torn_rows();
Graph small_volumes();  // (C, D, H, W): windows with strides and dilation, pools, batch norm, dropout, a join
Graph tall_cnn();       // the 17 rows become 4, and the first pool leaves one over
Graph tall_resnet20();  // 4 rows before the last pool
Graph tall_dropout_net();
// A window between a convolution with ReLU and the head. What the case does not give is random; the image has the rows
// that give `outputs` rows of output, or up to a stride more.
struct WindowCase {
  std::string_view type;  // conv, max_pool, avg_pool, or "avg_pool counted", which has count_padding
  std::int64_t kernel = 1, stride = 1, padding = 0;
  std::int64_t outputs = 1;
  std::string text() const;
};
LayerConfig window_layer(const WindowCase& window);
Graph one_window(const WindowCase& window);
// Two windows on one value, whose rows they prefer cut in different places, and a window behind them.
Graph random_windows(std::string_view name);
// Volumes of random depth behind windows of random sizes, strides and padding along it.
Graph random_volumes(std::string_view name);
Graph tall_batch_norm_net(const ModelConfig& norms = {});

}  // namespace echelon::test
