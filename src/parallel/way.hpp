// One direction of what travels between two ranks of a model group, seen from one of them: an outbox or an inbox, in
// the order of the micro-batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/engine.hpp"
#include "device/device.hpp"
#include "device/tensor.hpp"

namespace echelon {

inline constexpr std::size_t kBoxes = 2;  // one is filled or emptied while the other travels

// Of all that a rank does with others of its group; `sent` through shared memory: what others read of it.
struct Tally {
  double waited_s = 0;  // the compute thread was blocked
  WireCounters sent;
};

class Way {
 public:
  virtual ~Way() = default;
  // Of the passes to come: how many tensors, and how many elements each has at most.
  virtual void begin(int tensors, std::int64_t elems) = 0;
  // The sender's: copies the tensor out and returns; where every box is still under way, once one is free.
  virtual void send(const Tensor& tensor) = 0;
  // The receiver's: waits for the tensor.
  virtual void receive(const Tensor& tensor) = 0;
  // Until all that was sent has been taken.
  virtual void finish() = 0;
};

// Where a way leads.
struct WayEnds {
  Engine& group;       // of the model group
  int peer = 0;        // there
  bool sends = false;  // this rank
  int channel = 0;
};

// By messages. Who receives has posted its receives ahead.
std::unique_ptr<Way> make_message_way(Device& device, const WayEnds& ends, DType dtype, Tally& tally);
// Through `memory` of way_bytes, zero at first, which both ends see as part of `block`; tensors have `box_bytes` at
// most. Where the device's memory is out of the host's reach, the other's device reads it where it can, else what
// travels is staged there.
std::unique_ptr<Way> make_shared_way(Device& device, const WayEnds& ends, std::shared_ptr<SharedBlock> block,
                                     std::byte* memory, std::size_t box_bytes, Tally& tally);
std::size_t shared_way_bytes(std::size_t box_bytes);

}  // namespace echelon
