// SPDX-License-Identifier: Apache-2.0
// The binomial tree over ranks that control messages take: a rank's parent clears its lowest set bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "comm/protocol/machine.hpp"

namespace echelon::inline train {

// Priority of control messages: before any message of the exchange.
inline constexpr int kAheadOfAll = -1;
// Token of messages to and from the parent; other tokens are indices among the children.
inline constexpr Token kParent = 1 << 20;

struct BinomialPlace {
  int parent = -1;                                    // -1: the root, rank 0
  std::vector<std::pair<int, std::size_t>> children;  // nearest first; how many ranks its part of the tree has

  BinomialPlace(int rank, int ranks) {
    for (int bit = 1; bit < ranks; bit <<= 1) {
      if ((rank & bit) != 0) {
        parent = rank - bit;
        return;
      }
      if (rank + bit < ranks)
        children.emplace_back(rank + bit, static_cast<std::size_t>(std::min(bit, ranks - rank - bit)));
    }
  }
};

}  // namespace echelon::inline train
