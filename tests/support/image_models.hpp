// Small models of images that are taller than wide: what splits by rows are tried on.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/replicas.hpp"

namespace echelon::test {

Graph small_inception();  // branches of several windows, pools among them, joined by channels; batch norm, dropout
Graph small_windows();    // strides, dilation, groups, odd heights, pools that overlap and are padded; no padding
// Readers of one value that like their rows cut in different places.
Graph small_torn_rows();
Graph tall_cnn();       // 4 rows in the end, and an odd one below
Graph tall_resnet20();  // 4 rows in front of the last pool
Graph tall_dropout_net();
// A window between a convolution with ReLU and the head, random but for what is given: the image has as many rows as
// give it `outputs`, or up to a stride more.
struct WindowCase {
  std::string_view type;  // conv, max_pool, avg_pool; avg_pool counted: with count_padding
  std::int64_t kernel = 1, stride = 1, padding = 0;
  std::int64_t outputs = 1;
  std::string text() const;
};
LayerConfig window_layer(const WindowCase& window);
Graph one_window(const WindowCase& window);
// Two windows of a value, which like its rows cut in different places, and one behind them.
Graph random_windows(std::string_view name);
Graph tall_batch_norm_net(const ModelConfig& norms = {});

}  // namespace echelon::test
