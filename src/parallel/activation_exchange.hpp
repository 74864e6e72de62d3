// Moves activations and their gradients between the ranks of a model group: the implementation behind
// Program::set_transfer.
//
// Messages between stages, and rows between spatial shards: each cut has two links (p2p_link.hpp), values forward and
// gradients backward, in the order of the micro-batches. The sender continues at once; the receiver waits only if the
// tensor has not arrived. Sums and gathers over the shards or spatial shards of a stage are collectives
// (replica_collective.hpp) that the compute thread waits for.
//
// Where all ranks of a group lie on one host both go through memory that they share, from device to device where the
// devices reach each other; else by messages of the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/engine.hpp"
#include "device/device.hpp"
#include "model/program.hpp"
#include "parallel/mesh.hpp"
#include "parallel/p2p_link.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/replica_collective.hpp"

namespace echelon::inline parallel {

// Host memory for transfer buffers on the rank at these coordinates, where its group lies on several hosts and its
// device uses host memory (otherwise more).
std::size_t transfer_buffer_bytes(const std::vector<Cut>& cuts, const MeshCoord& coord, std::int64_t batch,
                                  DType dtype);

// The engines of the groups inside a replica.
struct GroupEngines {
  Engine &group, &shards, &spatial_shards;  // of the model group; of the shards and of the spatial shards of a stage
};

class ActivationExchange {
 public:
  // Collective over the model group, and nothing may be under way. The channels of `engines` from `first_channel` on
  // are the activation exchange's. `dtype`: of the tensors that travel; halves are added in f32. `most_samples`: of any
  // batch.
  ActivationExchange(Device& device, const GroupEngines& engines, const Mesh& mesh, const MeshCoord& coord,
                     std::vector<Cut> cuts, DType dtype, int first_channel, std::int64_t most_samples);
  ~ActivationExchange();
  ActivationExchange(const ActivationExchange&) = delete;

  // Announces the next passes: their number, the samples in each, and whether gradients are exchanged. All stages call
  // it alike.
  void begin(int micro_batches, std::int64_t batch, bool training);
  void carry(const Transfer& transfer);
  // Blocks until the receivers have read everything that was sent; messages that are pending when the engine ends are
  // lost.
  void finish();

  // The compute thread was blocked here, since the last call.
  double take_waited_s();
  // Sent by this rank so far.
  const WireCounters& sent() const { return traffic_.sent; }
  // Of it, rows for neighbours.
  std::uint64_t halo_bytes() const { return halo_bytes_; }

 private:
  void make_links(Device& device, Engine& group, const Mesh& mesh, const MeshCoord& coord, DType dtype,
                  int first_channel);
  void make_collectives(Device& device, Engine& ranks, const MeshCoord& coord, bool spatial_shards, DType dtype,
                        int first_channel);

  const std::vector<Cut> cuts_;
  const std::int64_t most_samples_;
  std::int64_t batch_ = 0;
  GroupTraffic traffic_;
  std::vector<std::unique_ptr<P2pLink>> links_;  // by cut and direction; null where this rank is at neither end
  std::vector<std::shared_ptr<ReplicaCollective>>
      collectives_;  // by cut; null where it is a message, or another stage's
  std::uint64_t halo_bytes_ = 0;
};

}  // namespace echelon::inline parallel
