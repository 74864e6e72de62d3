// SPDX-License-Identifier: Apache-2.0
// Sequences cut along their steps and concatenated again, around layers that run on time chunks
// (parallel/time_chunk_pipeline.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "model/layer.hpp"

namespace echelon::inline model {

// (T, F), or tokens (T) if `indices`, -> one output (steps[i], F) or (steps[i]) for each entry of `steps`, whose sum is
// T, in the order of time.
LayerPtr make_split_steps(std::vector<std::int64_t> steps, bool indices);
// (T1, F), (T2, F), .. -> (T1 + T2 + .., F)
LayerPtr make_join_steps();

}  // namespace echelon::inline model
