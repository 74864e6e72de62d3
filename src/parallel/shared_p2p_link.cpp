// SPDX-License-Identifier: Apache-2.0
#include "parallel/shared_p2p_link.hpp"

#include <utility>

#include "base/check.hpp"
#include "base/spans.hpp"

namespace echelon::inline parallel {

SharedP2pLink::SharedP2pLink(Device& device, const P2pEnds& ends, std::shared_ptr<SharedBlock> block, std::byte* memory,
                             std::size_t buffer_bytes, WireCounters& sent)
    : device_(device),
      ends_(ends),
      buffer_bytes_(buffer_bytes),
      queue_(memory + kHandshakeBytes, kTransferBuffers, buffer_bytes),
      block_(std::move(block)),
      sent_(sent) {}

template <class Ready>
void SharedP2pLink::wait(const Ready& ready) {
  if (ready()) return;
  const WatchedSpan span(SpanKind::split_wait);
  wait_for_peer(ends_.group, *block_, {.channel = ends_.channel, .peer = ends_.peer, .sending = ends_.sends}, ready);
}

void SharedP2pLink::wait_to_fill() {
  wait([this] { return queue_.may_fill(); });
}
void SharedP2pLink::wait_to_take() {
  wait([this] { return queue_.may_take(); });
}

void SharedP2pLink::wait_for_all() {
  wait([this] { return queue_.all_taken(); });
}

void SharedP2pLink::send(const Tensor& tensor) {
  ECHELON_CHECK_LE(tensor.bytes(), buffer_bytes_);
  wait_to_fill();
  ++sent_.messages_sent;
  sent_.bytes_sent += tensor.bytes();
  put(tensor);
  queue_.filled();
}

void SharedP2pLink::receive(const Tensor& tensor) {
  wait_to_take();
  get(tensor);
  queue_.taken();
}

std::unique_ptr<P2pLink> make_shared_p2p_link(Device& device, const P2pEnds& ends, std::shared_ptr<SharedBlock> block,
                                              std::byte* memory, std::size_t buffer_bytes, WireCounters& sent) {
  if (!device.on_host()) return make_peer_p2p_link(device, ends, std::move(block), memory, buffer_bytes, sent);
  return std::make_unique<SharedP2pLink>(device, ends, std::move(block), memory, buffer_bytes, sent);
}

std::size_t shared_p2p_link_bytes(std::size_t buffer_bytes) {
  return kHandshakeBytes + SharedQueue::bytes(kTransferBuffers, buffer_bytes);
}

}  // namespace echelon::inline parallel
