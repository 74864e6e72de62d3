// SPDX-License-Identifier: Apache-2.0
// The price list of configs/strategies/ALLREDUCE.md, written down a second time: the tests compare the counting
// transport with it.
#pragma once

#include <cstdint>
#include <string>

namespace echelon::test {

// A row, for n elements on k ranks. `messages` and `payload_elems` count all ranks, the rest the busiest one.
struct Row {
  std::int64_t messages = 0, payload_elems = 0, most_sent_elems = 0, scratch_elems = 0;
  int steps = 0;
  std::int64_t full_steps_from = 1;  // elements; with fewer, some messages of the longest chain may be empty
  std::int64_t library_elems = 0;    // elements that each rank hands to the library
};

// `segment` 0 means the default of 64 Ki elements. Every rank is on a host of its own, and every rank is a server.
Row row_of(const std::string& name, std::int64_t k, std::int64_t n, std::int64_t segment);

// Returns the number of messages that n elements are cut into.
std::int64_t pieces(std::int64_t n, std::int64_t segment);

}  // namespace echelon::test
