// Memory shared by the ranks of a host, checked on any transport whose ranks are on one: throws where it fails.
#pragma once

#include "comm/engine.hpp"

namespace echelon::test {

// Random tensors around a ring of shared ways, beside what was sent.
void check_shared_ways(Engine& engine, Device& device);
// Random sums and gathers in one meeting, one after another: sums beside the plain sum in the order of ranks, to the
// bit; gathers beside what each rank had. Bytes are those of an all-reduce and an all-gather.
void check_shared_meetings(Engine& engine);

}  // namespace echelon::test
