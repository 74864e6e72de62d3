// SPDX-License-Identifier: Apache-2.0
// Estimates how far the clocks of ranks are apart, by ping-pong (Cristian, Distributed Computing 3, 1989; NTP's clock
// filter, RFC 5905 section 10). Rank 0 reads its clock (a) and asks, the other rank answers with a reading of its own
// clock (r), and rank 0 reads its clock again (b). The answer was read at some time between a and b, so that
//
//   offset = r - (a + b) / 2     within +- (b - a) / 2, however long each of the two messages took
//
// The round with the smallest b - a is used, because it contains the shortest delays.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "comm/engine.hpp"

namespace echelon::inline comm {

// The clock of one rank compared with that of rank 0.
struct ClockOffset {
  double offset_s = 0;  // the rank's reading minus rank 0's at the same moment
  double error_s = 0;   // bound of the error of offset_s: half of the shortest round trip
  double at_s = 0;      // when the offset was measured, by rank 0's clock
};

// Collective and blocking: all ranks of the engine call it. No other call may use `channel` meanwhile; `clock` is the
// clock of this rank. Returns one offset per rank on rank 0 (its own is 0 with error 0), an empty vector elsewhere.
// Ranks take turns. Each takes up to 40 rounds of two 16-byte messages; after 20 ms it stops once it has 8 rounds.
std::vector<ClockOffset> estimate_clock_offsets(Engine& engine, int channel, const Clock& clock);

// Interpolates linearly between two estimates, which is exact for clocks that drift at a constant rate. `at_s` is a
// time of the other rank's clock. If both estimates are of the same moment, returns the offset of `before`.
double offset_at(const ClockOffset& before, const ClockOffset& after, double at_s);

// Collective and blocking: rank 0 receives the text of every rank in rank order and passes each to `take`, its own
// first. It holds one received text at a time. No other call may use `channel` meanwhile.
void collect_texts(Engine& engine, int channel, const std::string& own,
                   const std::function<void(int rank, const std::string& text)>& take);

}  // namespace echelon::inline comm
