// Carries what travels between the ranks of a model group: the body behind Program::set_transfer.
//
// Messages between stages, and rows between bands. Each cut has two ways, values forward and gradients back, each a
// channel of messages in the order of the micro-batches. Who sends copies the tensor into an outbox and goes on; who
// receives has posted its receives ahead, and waits only where the message is not there yet. Boxes are host memory that
// the device copies to and from.
//
// Sums and gathers over the shards or bands of a stage are all-reduces and all-gathers that the compute thread waits
// for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/engine.hpp"
#include "device/device.hpp"
#include "model/program.hpp"
#include "parallel/mesh.hpp"
#include "parallel/pipeline.hpp"

namespace echelon {

// Host memory that a courier takes on a rank of this seat, whose device's memory is the host's (else more): boxes.
std::size_t courier_bytes(const std::vector<Cut>& cuts, const MeshSeat& seat, std::int64_t batch, DType dtype);

// The engines of the groups inside a replica.
struct GroupEngines {
  Engine &group, &shards, &bands;  // of the model group; of the shards and of the bands of a stage
};

class Courier {
 public:
  // The channels of `engines` from `first_channel` on are the courier's. `dtype`: of the tensors that travel; halves
  // are added in f32.
  Courier(Device& device, const GroupEngines& engines, const Mesh& mesh, const MeshSeat& seat, std::vector<Cut> cuts,
          DType dtype, int first_channel);
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
  const WireCounters& sent() const { return sent_; }
  // Of it, rows for neighbours.
  std::uint64_t halo_bytes() const { return halo_bytes_; }

 private:
  struct Way;
  struct Meeting;  // of shards or bands
  Way& way(int cut, bool backward) { return *ways_[static_cast<std::size_t>(2 * cut + (backward ? 1 : 0))]; }
  void send(Way& way, const Tensor& tensor);
  void receive(Way& way, const Tensor& tensor);
  void post(Way& way);
  void prepare(Meeting& meeting, const Cut& cut, std::int64_t batch);
  void sum(Meeting& meeting, const Transfer& transfer);
  void gather(Meeting& meeting, const Cut& cut, const Transfer& transfer);
  void meet(Meeting& meeting, void* data, DType dtype);

  Device& device_;
  GroupEngines engines_;
  const std::vector<Cut> cuts_;
  const DType dtype_;
  std::vector<std::unique_ptr<Way>> ways_;          // by cut and direction; null where this rank is at neither end
  std::vector<std::unique_ptr<Meeting>> meetings_;  // by cut; null where it is a message, or another stage's
  double waited_s_ = 0;
  WireCounters sent_;
  std::uint64_t halo_bytes_ = 0;
};

}  // namespace echelon
