// Carries what travels between the ranks of a model group: the body behind Program::set_transfer.
//
// Messages between stages, and rows between bands: each cut has two ways (way.hpp), values forward and gradients back,
// in the order of the micro-batches. Who sends goes on at once; who receives waits only where the tensor is not there
// yet. Sums and gathers over the shards or bands of a stage are meetings (meeting.hpp) that the compute thread waits
// for.
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
#include "parallel/meeting.hpp"
#include "parallel/mesh.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/way.hpp"

namespace echelon {

// Host memory that a courier takes on a rank of this seat where its group lies on several hosts, and whose device's
// memory is the host's (else more).
std::size_t courier_bytes(const std::vector<Cut>& cuts, const MeshSeat& seat, std::int64_t batch, DType dtype);

// The engines of the groups inside a replica.
struct GroupEngines {
  Engine &group, &shards, &bands;  // of the model group; of the shards and of the bands of a stage
};

class Courier {
 public:
  // Collective over the model group, and nothing may be under way. The channels of `engines` from `first_channel` on
  // are the courier's. `dtype`: of the tensors that travel; halves are added in f32. `most_samples`: of any batch.
  Courier(Device& device, const GroupEngines& engines, const Mesh& mesh, const MeshSeat& seat, std::vector<Cut> cuts,
          DType dtype, int first_channel, std::int64_t most_samples);
  ~Courier();
  Courier(const Courier&) = delete;

  // Of the passes to come: their number, samples in each, and whether gradients travel. All stages call it alike.
  void begin(int micro_batches, std::int64_t batch, bool training);
  void carry(const Transfer& transfer);
  // Until all that was sent has been taken; what has not when the engine ends is lost.
  void finish();

  // The compute thread was blocked here, since the last call.
  double take_waited_s();
  // Sent by this rank so far.
  const WireCounters& sent() const { return tally_.sent; }
  // Of it, rows for neighbours.
  std::uint64_t halo_bytes() const { return halo_bytes_; }

 private:
  void make_ways(Device& device, Engine& group, const Mesh& mesh, const MeshSeat& seat, DType dtype, int first_channel);
  void make_meetings(Device& device, Engine& ranks, const MeshSeat& seat, bool bands, DType dtype, int first_channel);

  const std::vector<Cut> cuts_;
  const std::int64_t most_samples_;
  std::int64_t batch_ = 0;
  Tally tally_;
  std::vector<std::unique_ptr<Way>> ways_;          // by cut and direction; null where this rank is at neither end
  std::vector<std::shared_ptr<Meeting>> meetings_;  // by cut; null where it is a message, or another stage's
  std::uint64_t halo_bytes_ = 0;
};

}  // namespace echelon
