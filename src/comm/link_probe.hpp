// Latency and bandwidth between ranks, measured by ping-pong: the parameters of a network that plan_time.hpp needs.
#pragma once

#include "comm/collective/plan_time.hpp"
#include "comm/engine.hpp"

namespace echelon::inline comm {

// All ranks of the engine call it and get the same numbers; `channel` is its own. Inside: the first two ranks of the
// first host that has two. Between: the first rank of the first host with that of up to 7 others, one after another, of
// which the slowest counts. Where there is no such pair, the other link's numbers. Takes some ms a pair.
Network probe_network(Engine& engine, int channel);

}  // namespace echelon::inline comm
