// SPDX-License-Identifier: Apache-2.0
#include "model/memory.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.hpp"

namespace echelon::inline model {
namespace {

std::size_t aligned(std::size_t bytes) { return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment; }

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

struct Block {
  std::size_t begin, end;
};

// Offset of the tightest gap of at least `bytes` between `taken` blocks (sorted by begin); behind them if none fits.
std::size_t best_gap(const std::vector<Block>& taken, std::size_t bytes) {
  std::size_t best = 0, best_room = std::numeric_limits<std::size_t>::max(), free_from = 0;
  bool found = false;
  for (const Block& block : taken) {
    if (block.begin > free_from) {
      const std::size_t room = block.begin - free_from;
      if (room >= bytes && room < best_room) best = free_from, best_room = room, found = true;
    }
    free_from = std::max(free_from, block.end);
  }
  return found ? best : free_from;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> tensors) {
  MemoryPlan plan;
  plan.offsets.assign(tensors.size(), 0);
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tensors[a].bytes > tensors[b].bytes; });
  std::vector<std::size_t> placed;
  for (std::size_t i : order) {
    std::vector<Block> taken;
    for (std::size_t j : placed)
      if (meet(tensors[i], tensors[j])) taken.push_back({plan.offsets[j], plan.offsets[j] + aligned(tensors[j].bytes)});
    std::sort(taken.begin(), taken.end(), [](const Block& a, const Block& b) { return a.begin < b.begin; });
    plan.offsets[i] = best_gap(taken, aligned(tensors[i].bytes));
    plan.bytes = std::max(plan.bytes, plan.offsets[i] + aligned(tensors[i].bytes));
    placed.push_back(i);
  }
  return plan;
}

void check_memory_plan(std::span<const Lifetime> tensors, const MemoryPlan& plan) {
  ECHELON_CHECK_EQ(plan.offsets.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    ECHELON_CHECK_LE(plan.offsets[i] + tensors[i].bytes, plan.bytes, "tensor {} ends beyond the allocation", i);
    for (std::size_t j = 0; j < i; ++j) {
      const bool apart = plan.offsets[i] + tensors[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + tensors[j].bytes <= plan.offsets[i];
      ECHELON_CHECK(apart || !meet(tensors[i], tensors[j]), "tensors {} and {} are live at the same time, but overlap",
                    i, j);
    }
  }
}

}  // namespace echelon::inline model
