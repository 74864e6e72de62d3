// Small models of images that are taller than wide: what splits by rows are tried on.
#pragma once

#include "tests/support/replicas.hpp"

namespace echelon::test {

Graph small_inception();  // branches of several windows, pools among them, joined by channels; batch norm, dropout
Graph small_windows();    // strides, dilation, groups, odd heights, pools that overlap and are padded; no padding
// Readers of one value that like their rows cut in different places.
Graph small_torn_rows();
Graph tall_lenet();     // 4 rows in the end, and an odd one below
Graph tall_resnet20();  // 4 rows in front of the last pool
Graph tall_dropout_net();
Graph tall_batch_norm_net(const ModelConfig& norms = {});

}  // namespace echelon::test
