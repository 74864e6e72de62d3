// SPDX-License-Identifier: Apache-2.0
// Measures latency and bandwidth between ranks by ping-pong, as the network parameters of plan_time.hpp.
#pragma once

#include "comm/collective/plan_time.hpp"
#include "comm/engine.hpp"

namespace echelon::inline comm {

// Collective and blocking: all ranks of the engine call it while nothing else is in flight, and all get the same
// numbers. Nothing else uses `channel`. For each pair, takes the median of 31 round trips of 8 bytes (latency_s is half
// of it) and of 7 round trips of 1 MiB (bytes_per_s = 1 MiB / (half of it - latency_s)). add_bytes_per_s is that of the
// slowest rank. `inside` is measured between the first two ranks of the first host that has two; `between` between the
// first rank of the first host and those of up to 7 others, one after another, of which the slowest is taken. A link
// without such a pair gets the numbers of the other link; with one rank Network keeps its defaults. Takes some
// milliseconds per pair.
Network probe_network(Engine& engine, int channel);

}  // namespace echelon::inline comm
