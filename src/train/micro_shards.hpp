// SPDX-License-Identifier: Apache-2.0
// The lower levels of the one binary tree in which train.reproducible adds gradients and losses.
//
// A step's batch is M = train.micro_shards equal parts. Replica r of k runs parts r*M/k .. (r+1)*M/k - 1, in order,
// each by itself; part i's gradient is leaf i of a balanced tree, whatever k is:
//
//          +                    levels above the line lie between replicas: an all-reduce that keeps the tree
//      +       +     - k = 2
//    +   +   +   +   - k = 4
//   0 1 2 3 4 5 6 7
//
// Inside a replica the tree is a binary counter: leaf i is added to the sums of n finished subtrees, where n is the
// number of trailing ones of i. Every pass overwrites the gradient arena; the last pass completes the tree range by
// range as gradients are finished, so that buckets are still sent during it. Losses are added in the same tree, over
// ranks too.
//
// log2(M/k) gradient arenas suffice beside the one that programs write to; the constructor allocates
// them on the device (MemoryError above its limit). Only the compute thread calls it; it sends nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "device/arenas.hpp"
#include "model/program.hpp"

namespace echelon::inline train {

class MicroShards {
 public:
  // `leaves` = M/k, a power of two.
  MicroShards(Arenas& arenas, std::int64_t leaves);

  void begin_step();
  // The gradient arena holds a leaf that is not the last: its memory may be written anew.
  void keep_gradients();
  // Does the same for the last leaf, and only for this range, which holds the replica's sum afterwards. Every range
  // once.
  void complete_gradients(ArenaRange range);
  // Called for every leaf, in order.
  void add_losses(const LossSums& losses);
  // The sum of all leaves.
  const LossSums& losses() const { return losses_.back(); }

 private:
  void add(std::size_t level, ArenaRange range);  // gradients += the level's

  Arenas& arenas_;
  std::int64_t leaves_;
  std::int64_t kept_ = 0;         // leaves of this step whose gradients are done
  std::int64_t counted_ = 0;      // leaves whose losses are added
  std::vector<Memory> levels_;    // sums of finished subtrees of 1, 2, 4, .. leaves
  std::vector<LossSums> losses_;  // the same for losses; the last is the sum of all
};

}  // namespace echelon::inline train
