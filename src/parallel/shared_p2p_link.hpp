// SPDX-License-Identifier: Apache-2.0
// Links through host memory that both ranks share: a queue of kTransferBuffers tensors.
#pragma once

#include <memory>

#include "comm/shared_queue.hpp"
#include "parallel/p2p_link.hpp"

namespace echelon::inline parallel {

inline constexpr std::size_t kHandshakeBytes =
    128;  // in front of the queue: where devices exchange the handle of their memory

class SharedP2pLink : public P2pLink {
 public:
  SharedP2pLink(Device& device, const P2pEnds& ends, std::shared_ptr<SharedBlock> block, std::byte* memory,
                std::size_t buffer_bytes, WireCounters& sent);

  void begin(int, std::int64_t) override {}
  void send(const Tensor& tensor) override;
  void receive(const Tensor& tensor) override;
  // Nothing to wait for: sent tensors stay in the shared memory, which outlives the sender.
  void finish() override {}

 protected:
  // Copies into or out of a buffer of the queue; return once the copy is complete.
  virtual void put(const Tensor& tensor) { device_.to_host(queue_.to_fill(), tensor.data, tensor.bytes()); }
  virtual void get(const Tensor& tensor) { device_.to_device(tensor.data, queue_.to_take(), tensor.bytes()); }

  void wait_to_fill();  // waits until a buffer is free
  void wait_to_take();  // waits until a tensor has arrived
  // Waits until every filled buffer has been taken.
  void wait_for_all();

  Device& device_;
  const P2pEnds ends_;
  const std::size_t buffer_bytes_;
  SharedQueue queue_;

 private:
  template <class Ready>
  void wait(const Ready& ready);

  const std::shared_ptr<SharedBlock> block_;
  WireCounters& sent_;
};

std::unique_ptr<P2pLink> make_peer_p2p_link(Device& device, const P2pEnds& ends, std::shared_ptr<SharedBlock> block,
                                            std::byte* memory, std::size_t buffer_bytes, WireCounters& sent);

}  // namespace echelon::inline parallel
