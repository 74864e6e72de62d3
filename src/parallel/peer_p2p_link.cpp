// SPDX-License-Identifier: Apache-2.0
// Transfers from device to device: the transfer buffers are in the memory of the sender's device, and the receiver's
// device reads them. The sender writes the handle of that memory (Device::export_memory) into the shared host memory;
// at its first receive the receiver tries to open it and writes the result there. Until the sender reads a success,
// tensors are staged through the host.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "parallel/shared_p2p_link.hpp"

namespace echelon::inline parallel {
namespace {

enum class Reach : std::uint32_t { unknown, yes, no };

// Stored in the shared memory, in front of the queue. Members that are not atomic become visible with the next buffer.
struct Handshake {
  std::atomic<Reach> reached = Reach::unknown;  // written by the receiver
  std::uint32_t bytes = 0;                      // length of `name`, written by the sender; 0: no handle
  std::array<char, 104> name = {};
  std::array<bool, kTransferBuffers> on_device = {};  // by buffer: whether its tensor is in device memory
};
static_assert(sizeof(Handshake) <= kHandshakeBytes);

class PeerP2pLink final : public SharedP2pLink {
 public:
  PeerP2pLink(Device& device, const P2pEnds& ends, std::shared_ptr<SharedBlock> block, std::byte* memory,
              std::size_t buffer_bytes, WireCounters& sent)
      : SharedP2pLink(device, ends, std::move(block), memory, buffer_bytes, sent),
        handshake_(*reinterpret_cast<Handshake*>(memory)) {
    if (!ends_.sends) return;
    buffers_ = device_.allocate(kTransferBuffers * buffer_bytes_, "transfer buffers for other devices");
    const std::string name = device_.export_memory(buffers_);
    if (name.size() > handshake_.name.size()) return;
    handshake_.bytes = static_cast<std::uint32_t>(name.size());
    std::copy(name.begin(), name.end(), handshake_.name.begin());
  }

  // Waits until the receiver has read all tensors, because they lie in this device's memory.
  void finish() override {
    if (ends_.sends) wait_for_all();
  }

 private:
  void put(const Tensor& tensor) override {
    const Reach reached = handshake_.reached.load(std::memory_order_acquire);
    if (reached == Reach::no) buffers_ = {};
    handshake_.on_device[queue_.place()] = reached == Reach::yes;
    if (reached != Reach::yes) return SharedP2pLink::put(tensor);
    copy(buffer(), tensor.data, tensor.bytes());
  }
  void get(const Tensor& tensor) override {
    if (handshake_.reached.load(std::memory_order_relaxed) == Reach::unknown) answer();
    if (!handshake_.on_device[queue_.place()]) return SharedP2pLink::get(tensor);
    copy(tensor.data, buffer(), tensor.bytes());
  }
  void answer() {
    if (handshake_.bytes > 0) buffers_ = device_.import_memory(std::string(handshake_.name.data(), handshake_.bytes));
    handshake_.reached.store(buffers_.data() ? Reach::yes : Reach::no, std::memory_order_release);
  }

  void* buffer() const { return buffers_.bytes_at(queue_.place() * buffer_bytes_); }
  void copy(void* to, const void* from, std::size_t bytes) {
    device_.copy(to, from, bytes);
    device_.record()->wait();
  }

  Handshake& handshake_;
  Memory buffers_;  // the sender's memory; on the receiver its mapping
};

}  // namespace

std::unique_ptr<P2pLink> make_peer_p2p_link(Device& device, const P2pEnds& ends, std::shared_ptr<SharedBlock> block,
                                            std::byte* memory, std::size_t buffer_bytes, WireCounters& sent) {
  return std::make_unique<PeerP2pLink>(device, ends, std::move(block), memory, buffer_bytes, sent);
}

}  // namespace echelon::inline parallel
