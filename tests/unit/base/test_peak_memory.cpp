// SPDX-License-Identifier: Apache-2.0
// The peak of resident memory, which begins anew with each run of a process.
#include "base/peak_memory.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <vector>

#include "base/process.hpp"

using namespace echelon;

namespace {

constexpr std::size_t kBlock = 64 << 10;
using Block = std::unique_ptr<char[]>;

Block touched_block() {
  Block block(new char[kBlock]);
  for (std::size_t at = 0; at < kBlock; at += 1024) const_cast<volatile char&>(block[at]) = 1;
  return block;
}

// Allocates blocks from the heap and writes to them.
std::vector<Block> touched_mb(std::size_t mb) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < mb * (1 << 20) / kBlock; ++i) blocks.push_back(touched_block());
  return blocks;
}

}  // namespace

TEST_CASE("peak memory counts what was freed, until the next run begins", "[memory][resident]") {
  begin_peak_memory();
  const double before_mb = resident_mb();
  Block last;  // stays at the end of the heap, so that freed blocks before it stay resident
  {
    const std::vector<Block> blocks = touched_mb(200);
    last = touched_block();
  }
  CHECK(peak_memory_mb() > before_mb + 150);
  begin_peak_memory();
  CHECK(peak_memory_mb() < before_mb + 50);
  const std::vector<Block> again = touched_mb(100);
  CHECK(peak_memory_mb() > before_mb + 80);
}

TEST_CASE("peak memory of a later run is unknown where the kernel does not reset it", "[memory][resident]") {
  begin_peak_memory();
  begin_peak_memory("/proc/self/no_such_file");
  CHECK(std::isnan(peak_memory_mb()));
  begin_peak_memory();
  CHECK(peak_memory_mb() > 1);
}
