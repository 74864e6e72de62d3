// How far the clocks of ranks are apart, by ping-pong (Cristian, Distributed Computing 3, 1989; NTP's clock filter, RFC
// 5905 section 10): rank 0 reads its clock (a), asks, the other rank answers with its own reading (r), rank 0 reads
// again (b). The answer was read somewhere between, so that
//
//   offset = r - (a + b) / 2     within +- (b - a) / 2, whatever the two ways took
//
// Of several rounds the one with the least b - a counts: the fewest delays were in it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "comm/engine.hpp"

namespace echelon::inline comm {

// A rank's clock against rank 0's.
struct ClockOffset {
  double offset_s = 0;  // its reading minus rank 0's at the same moment
  double error_s = 0;   // at most so wrong: half of the shortest round trip
  double at_s = 0;      // when, by rank 0's clock
};

// Collective and blocking: all ranks of the engine call it. `channel` is its own meanwhile, `clock` the clock of this
// rank. By rank on rank 0 (itself: 0, without error), empty elsewhere. Ranks take turns, each up to 40 rounds of two
// messages of 16 bytes, but no more than 8 once 20 ms are over.
std::vector<ClockOffset> estimate_clock_offsets(Engine& engine, int channel, const Clock& clock);

// The offset at a time, of two estimates: on the line through both, so that clocks that drift evenly are met. `at_s` of
// the other rank's clock. One estimate: it holds always.
double offset_at(const ClockOffset& before, const ClockOffset& after, double at_s);

// Collective and blocking: rank 0 takes the text of every rank, its own first, one after another in order of rank: no
// more than one is in its memory. `channel` is its own meanwhile.
void collect_texts(Engine& engine, int channel, const std::string& own,
                   const std::function<void(int rank, const std::string& text)>& take);

}  // namespace echelon::inline comm
