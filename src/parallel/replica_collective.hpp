// Collectives inside a replica, over the tensor shards or spatial shards of a stage: sums and gathers that the compute
// thread waits for.
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

// Blocks of ranks, (outer, units of the rank, inner), that are to become (outer, units of all, inner): outer are
// samples, with places of sequences or channels of images, inner what lies behind a unit.
struct GatherForm {
  std::int64_t outer = 1, inner = 1;
  std::vector<std::int64_t> units;  // by rank
};

class ReplicaCollective {
 public:
  virtual ~ReplicaCollective() = default;
  // `to` becomes the sum of all ranks' `from`, of one shape, f32 or f64; the same bits on all.
  virtual void sum(const Tensor& from, const Tensor& to) = 0;
  virtual void gather(const GatherForm& form, const Tensor& from, const Tensor& to) = 0;
};

// The collective of one cut, by all-reduces and all-gathers on its channel.
std::unique_ptr<ReplicaCollective> make_message_collective(Device& device, Engine& ranks, int channel,
                                                           GroupTraffic& traffic);
// The collectives of all cuts through memory that the ranks share; values have `slot_bytes` at most. `channel`: for the
// watchdog to name.
std::unique_ptr<ReplicaCollective> make_shared_collective(Device& device, Engine& ranks, int channel,
                                                          std::shared_ptr<SharedBlock> block, std::size_t slot_bytes,
                                                          GroupTraffic& traffic);
std::size_t shared_collective_bytes(std::size_t slot_bytes);

}  // namespace echelon::inline parallel
