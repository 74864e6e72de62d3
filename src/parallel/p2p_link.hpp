// SPDX-License-Identifier: Apache-2.0
// One direction of a point-to-point link between two ranks of a model group; each rank has an object for its end, that
// of the sender or the receiver. Tensors arrive in the order in which they were sent. The compute thread makes all
// calls; if the peer is lost, waits throw the error that ended the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/engine.hpp"
#include "device/device.hpp"
#include "device/tensor.hpp"

namespace echelon::inline parallel {

inline constexpr std::size_t kTransferBuffers = 2;  // double buffering: one is filled or read while the other is sent

class P2pLink {
 public:
  virtual ~P2pLink() = default;
  // Before each step or evaluation, on both ends: the number of tensors to come and the elements of each.
  virtual void begin(int tensors, std::int64_t elems) = 0;
  // Sender: copies the tensor into a transfer buffer and returns; blocks while no buffer is free.
  virtual void send(const Tensor& tensor) = 0;
  // Receiver: blocks until the tensor has arrived.
  virtual void receive(const Tensor& tensor) = 0;
  // Blocks until the receiver has read everything that was sent.
  virtual void finish() = 0;
};

// The ends of a link as seen by this rank.
struct P2pEnds {
  Engine& group;       // engine of the model group
  int peer = 0;        // rank in `group`
  bool sends = false;  // whether this rank is the sender
  int channel = 0;
};

// Uses messages of the engine; the receiver posts its receives in advance. `sent` outlives the link and counts messages
// and their bytes; so it does for shared memory, with the bytes written there.
std::unique_ptr<P2pLink> make_message_p2p_link(Device& device, const P2pEnds& ends, DType dtype, WireCounters& sent);
// Uses `memory`, shared_p2p_link_bytes(buffer_bytes) bytes that are initially zero, which both ends see as part of
// `block`; a tensor has at most `buffer_bytes`. If devices have their own memory, the receiver's device reads that of
// the sender if it has access; otherwise tensors are staged in `memory`.
std::unique_ptr<P2pLink> make_shared_p2p_link(Device& device, const P2pEnds& ends, std::shared_ptr<SharedBlock> block,
                                              std::byte* memory, std::size_t buffer_bytes, WireCounters& sent);
std::size_t shared_p2p_link_bytes(std::size_t buffer_bytes);

}  // namespace echelon::inline parallel
