// One direction of a point-to-point link between two ranks of a model group, seen from one of them: its sender or its
// receiver. Tensors arrive in the order of the micro-batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/engine.hpp"
#include "device/device.hpp"
#include "device/tensor.hpp"

namespace echelon::inline parallel {

inline constexpr std::size_t kTransferBuffers = 2;  // double buffering: one is filled or read while the other is sent

// Per-rank wait time and traffic inside a model group. `sent` counts bytes of messages, or bytes written to shared
// memory.
struct GroupTraffic {
  double waited_s = 0;  // the compute thread was blocked
  WireCounters sent;
};

class P2pLink {
 public:
  virtual ~P2pLink() = default;
  // Announces the next passes: number of tensors, and the largest number of elements of one.
  virtual void begin(int tensors, std::int64_t elems) = 0;
  // Sender: copies the tensor into a transfer buffer and returns; blocks while no buffer is free.
  virtual void send(const Tensor& tensor) = 0;
  // Receiver: blocks until the tensor has arrived.
  virtual void receive(const Tensor& tensor) = 0;
  // Blocks until the receiver has read everything that was sent.
  virtual void finish() = 0;
};

// The two ends of a link.
struct P2pEnds {
  Engine& group;       // of the model group
  int peer = 0;        // there
  bool sends = false;  // this rank
  int channel = 0;
};

// By messages; the receiver posts its receives in advance.
std::unique_ptr<P2pLink> make_message_p2p_link(Device& device, const P2pEnds& ends, DType dtype, GroupTraffic& traffic);
// Through `memory` of shared_p2p_link_bytes, zero at first, which both ends see as part of `block`; tensors have
// `buffer_bytes` at most. For devices with memory of their own, the receiver's device reads the sender's memory where
// it can; otherwise tensors are staged in `memory`.
std::unique_ptr<P2pLink> make_shared_p2p_link(Device& device, const P2pEnds& ends, std::shared_ptr<SharedBlock> block,
                                              std::byte* memory, std::size_t buffer_bytes, GroupTraffic& traffic);
std::size_t shared_p2p_link_bytes(std::size_t buffer_bytes);

}  // namespace echelon::inline parallel
