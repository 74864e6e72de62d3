// SPDX-License-Identifier: Apache-2.0
// Describes the content of a data set for people.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.hpp"

namespace echelon::inline data {

// "1,500 samples of (1, 8, 8), 10 classes, u8", "a text of 1,003,855 tokens, 65 kinds, as 15,685 windows of 64",
// "270 sequences of up to 26 steps, 12 features, 9 classes", ..
std::string content_text(const Dataset& dataset);

// Returns a line for each likely mistake: axes in another order than (C, H, W), chunks that need more memory to decode
// than data.buffer_mb.
std::vector<std::string> layout_hints(const Dataset& dataset, double buffer_mb);

// Returns a line for each reason why ranks that share a sample read all of it. `changed`: samples are changed as a
// whole.
std::vector<std::string> slab_hints(const Dataset& dataset, const Slab& slab, bool changed);

// "all", "none", "of 3 of 8 files"
std::string checksums_text(const Dataset& dataset);

// Logs one line, once per process, if shards have no checksums, because damage to them would not be detected. Called by
// rank 0.
void warn_without_checksums(const Dataset& dataset, const std::string& location);

}  // namespace echelon::inline data
