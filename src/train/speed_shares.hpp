// SPDX-License-Identifier: Apache-2.0
// data.balance = "speed": how a step is divided among replicas whose speeds were measured.
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline train {

// Replica r took seconds[r], above 0, for batches[r] samples. Returns batches of the same sum for which all replicas
// would take equally long if seconds grew with samples: multiples of `unit`, at least one unit and at most `most`.
// Returns `batches` if the slowest replica would gain less than kLeastGain. Pure.
std::vector<std::int64_t> shares_by_speed(const std::vector<std::int64_t>& batches, const std::vector<double>& seconds,
                                          std::int64_t unit, std::int64_t most);

inline constexpr double kLeastGain = 0.05;  // of the step

}  // namespace echelon::inline train
