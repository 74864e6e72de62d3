// Latency and bandwidth between ranks, measured by ping-pong: the parameters of a network that plan_time.hpp needs.
#pragma once

#include "comm/collective/plan_time.hpp"
#include "comm/engine.hpp"

namespace echelon::inline comm {

// Collective and blocking: all ranks of the engine call it, nothing else is under way, and all get the same numbers.
// `channel` is its own. Of each pair the median of 31 round trips of 8 bytes (latency_s = half of it) and of 7 of 1 MiB
// (bytes_per_s = 1 MiB / (half of it - latency_s)); add_bytes_per_s is that of the slowest rank. Inside: the first two
// ranks of the first host that has two. Between: the first rank of the first host with that of up to 7 others, one
// after another, of which the slowest is taken. A link without such a pair gets the numbers of the other. One rank: the
// defaults of Network. Takes some milliseconds a pair.
Network probe_network(Engine& engine, int channel);

}  // namespace echelon::inline comm
