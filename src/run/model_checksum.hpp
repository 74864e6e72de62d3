// SPDX-License-Identifier: Apache-2.0
// A checksum of the weights of a model that does not depend on how ranks have cut it.
#pragma once

#include <cstdint>

#include "device/arenas.hpp"

namespace echelon::inline run {

// The sum, modulo 2^64, of a hash of each weight's parameter, index in the whole tensor and bits, frozen ones included:
// the sums over all slices add up to that of the whole model. `counts_whole`: parameters that every shard of a stage
// holds whole are counted here. Copies the weights to the host and waits.
std::uint64_t model_checksum(const Arenas& arenas, bool counts_whole);

}  // namespace echelon::inline run
