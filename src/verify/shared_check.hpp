// SPDX-License-Identifier: Apache-2.0
// Checks memory shared by the ranks of a host, on any transport with all ranks on one host. Throws on failure.
#pragma once

#include "comm/engine.hpp"

namespace echelon::verify {

// Sends random tensors around a ring of shared links and compares them with what was sent.
void check_shared_links(Engine& engine, Device& device);
// Runs random sums and gathers in one collective, one after another. Sums must equal the plain sum in rank order bit by
// bit, gathers the input of each rank. Checks that the bytes are those of an all-reduce and an all-gather.
void check_shared_collectives(Engine& engine);

}  // namespace echelon::verify
