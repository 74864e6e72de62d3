// SPDX-License-Identifier: Apache-2.0
// Moves activations and their gradients between the ranks of a model group: the callback of Program::set_transfer.
//
// Messages between stages and halos between spatial shards: each cut has two links (p2p_link.hpp), for values forward
// and gradients backward, in the order of the micro-batches. The sender continues at once; the receiver waits only if
// the tensor has not arrived. Sums and gathers over the shards or spatial shards of a stage are collectives
// (replica_collective.hpp) that the compute thread waits for.
//
// If all ranks of a group are on one host, both use shared memory, and links copy from device to device if the devices
// have access to each other; otherwise both use messages of the engine. The compute thread calls all functions.
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

// Bytes of host memory for the transfer buffers of the rank at these coordinates, if its group spans several hosts and
// its device computes on the host: kTransferBuffers tensors for each link of the rank, one for each gather. `batch` is
// the number of samples of a micro-batch.
std::size_t transfer_buffer_bytes(const std::vector<Cut>& cuts, const MeshCoord& coord, std::int64_t batch,
                                  DType dtype);

// The engines of the groups inside a replica.
struct GroupEngines {
  Engine &group, &shards, &spatial_shards;  // model group; shards, spatial shards of a stage
};

class ActivationExchange {
 public:
  // Collective over the model group, while its engines are idle. Uses the channels of `engines` from `first_channel`
  // on, two for each cut. `dtype` is that of activations; halves are summed in f32. `most_samples` is the largest batch
  // of any `begin`. Does nothing if the mesh is not split.
  ActivationExchange(Device& device, const GroupEngines& engines, const Mesh& mesh, const MeshCoord& coord,
                     std::vector<Cut> cuts, DType dtype, int first_channel, std::int64_t most_samples);
  ~ActivationExchange();
  ActivationExchange(const ActivationExchange&) = delete;

  // Before the passes of a step or an evaluation: the number of passes, the samples in each, and whether gradients are
  // exchanged. Every rank of the group calls it with the same numbers.
  void begin(int micro_batches, std::int64_t batch, bool training);
  // One transfer of a pass. Returns once `from` may be overwritten and `to` is filled. If a rank of the group is lost,
  // throws the error that ended the engine.
  void carry(const Transfer& transfer);
  // Blocks until the receivers have read everything that this rank sent. To be called before the engines end, which
  // drop pending messages.
  void finish();

  // Messages and bytes that this rank has sent so far, including bytes written to shared memory.
  const WireCounters& sent() const { return sent_; }
  // The bytes of halos among them.
  std::uint64_t halo_bytes() const { return halo_bytes_; }

 private:
  void make_links(Device& device, Engine& group, const Mesh& mesh, const MeshCoord& coord, DType dtype,
                  int first_channel);
  void make_collectives(Device& device, Engine& ranks, const MeshCoord& coord, bool spatial_shards, DType dtype,
                        int first_channel);

  const std::vector<Cut> cuts_;
  const std::int64_t most_samples_;
  std::int64_t batch_ = 0;
  WireCounters sent_;
  std::vector<std::unique_ptr<P2pLink>> links_;  // by cut and direction; null if this rank is at neither end
  std::vector<std::shared_ptr<ReplicaCollective>> collectives_;  // by cut; null for a message, or if another stage's
  std::uint64_t halo_bytes_ = 0;
};

}  // namespace echelon::inline parallel
