// Memory shared by the ranks of a host, checked on any transport whose ranks are on one: throws where it fails.
#pragma once

#include "comm/engine.hpp"

namespace echelon::verify {

// Random tensors around a ring of shared links, beside what was sent.
void check_shared_links(Engine& engine, Device& device);
// Random sums and gathers in one collective, one after another: sums beside the plain sum in the order of ranks, to the
// bit; gathers beside what each rank had. Bytes are those of an all-reduce and an all-gather.
void check_shared_collectives(Engine& engine);

}  // namespace echelon::verify
