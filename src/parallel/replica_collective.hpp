// SPDX-License-Identifier: Apache-2.0
// Collectives inside a replica, over the tensor shards or spatial shards of a stage. Every rank calls the same
// functions in the same order from its compute thread, which they block; if a rank is lost, they throw the error that
// ended the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/engine.hpp"
#include "comm/shared_queue.hpp"
#include "device/device.hpp"
#include "device/tensor.hpp"
#include "parallel/p2p_link.hpp"

namespace echelon::inline parallel {

// The shapes of a gather: blocks (outer, units[r], inner) of ranks r become (outer, sum of units, inner). For channels
// of images (N, C, H, W) outer = N and inner = H W, for rows outer = N C and inner = W, for features (N, T, F) outer =
// N T.
struct GatherForm {
  std::int64_t outer = 1, inner = 1;
  std::vector<std::int64_t> units;  // by rank
};

class ReplicaCollective {
 public:
  virtual ~ReplicaCollective() = default;
  // Sets `to` to the sum of all ranks' `from`; all have one shape, f32 or f64, and the same bits on every rank.
  virtual void sum(const Tensor& from, const Tensor& to) = 0;
  // Sets `to` to the blocks of all ranks in rank order; any dtype.
  virtual void gather(const GatherForm& form, const Tensor& from, const Tensor& to) = 0;
};

// The collective of one cut, using all-reduces and all-gathers on its channel.
std::unique_ptr<ReplicaCollective> make_message_collective(Device& device, Engine& ranks, int channel,
                                                           WireCounters& sent);
// The collectives of all cuts, using memory that the ranks share, one slot of `slot_bytes` per rank; no tensor is
// larger. `block` has shared_collective_bytes(slot_bytes) per rank. The watchdog shows `channel`.
std::unique_ptr<ReplicaCollective> make_shared_collective(Device& device, Engine& ranks, int channel,
                                                          std::shared_ptr<SharedBlock> block, std::size_t slot_bytes,
                                                          WireCounters& sent);
std::size_t shared_collective_bytes(std::size_t slot_bytes);

}  // namespace echelon::inline parallel
