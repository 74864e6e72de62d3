// The price list of configs/strategies/ALLREDUCE.md, written down a second time: what the counting transport is held
// against.
#pragma once

#include <cstdint>
#include <string>

namespace echelon::test {

// A row, of n elements on k ranks; `messages` and `payload_elems` over all ranks, the rest of the busiest one.
struct Row {
  std::int64_t messages = 0, payload_elems = 0, most_sent_elems = 0, scratch_elems = 0;
  int steps = 0;
  std::int64_t full_steps_from = 1;  // elements; below, some of the longest chain's messages may be empty
  std::int64_t library_elems = 0;    // handed to the library by each rank
};

// `segment`: 0 for the default of 64 Ki elements. Every rank on a host of its own, and every rank a server.
Row row_of(const std::string& name, std::int64_t k, std::int64_t n, std::int64_t segment);

// Messages that n elements are cut into.
std::int64_t pieces(std::int64_t n, std::int64_t segment);

}  // namespace echelon::test
