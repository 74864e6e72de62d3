// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "model/memory.hpp"
#include "tests/support/random.hpp"

using namespace echelon;

TEST_CASE("tensors that never meet share memory", "[model]") {
  const std::vector<Lifetime> chain = {{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}};
  const MemoryPlan plan = plan_memory(chain);
  CHECK_NOTHROW(check_memory_plan(chain, plan));
  CHECK(plan.bytes == 2 * 1024);  // two tensors live at a time, in steps of 64 bytes
}

TEST_CASE("a small tensor takes the tightest gap", "[model]") {
  // Tensors are placed by size: 512 at 0, then 256, then 128 behind; the first two die before the last is born.
  const std::vector<Lifetime> tensors = {{512, 0, 1}, {256, 0, 2}, {128, 0, 4}, {64, 2, 3}, {448, 2, 4}};
  const MemoryPlan plan = plan_memory(tensors);
  CHECK_NOTHROW(check_memory_plan(tensors, plan));
  CHECK(plan.bytes == 512 + 256 + 128);
  CHECK(plan.offsets[3] == 448);  // behind the 448, where the 512 was
}

TEST_CASE("random lifetimes never overlap while both live", "[model]") {
  for (int round = 0; round < 50; ++round) {
    const auto numbers = test::random_integers(3 * 60, 0, 40, "lifetimes " + std::to_string(round));
    std::vector<Lifetime> tensors;
    for (std::size_t i = 0; i < numbers.size(); i += 3)
      tensors.push_back({static_cast<std::size_t>(numbers[i] * 100), static_cast<int>(numbers[i + 1]),
                         static_cast<int>(numbers[i + 1] + numbers[i + 2] / 4)});
    const MemoryPlan plan = plan_memory(tensors);
    REQUIRE_NOTHROW(check_memory_plan(tensors, plan));
    for (std::size_t offset : plan.offsets) REQUIRE(offset % 64 == 0);
  }
}

TEST_CASE("a memory plan with overlapping tensors is refused", "[model]") {
  const std::vector<Lifetime> tensors = {{100, 0, 3}, {100, 2, 4}};
  CHECK_THROWS(check_memory_plan(tensors, {{0, 64}, 164}));
  CHECK_NOTHROW(check_memory_plan(tensors, {{0, 128}, 228}));
}
