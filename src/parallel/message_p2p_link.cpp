// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "base/check.hpp"
#include "base/spans.hpp"
#include "comm/collective/message.hpp"
#include "parallel/p2p_link.hpp"

namespace echelon::inline parallel {
namespace {

class MessageP2pLink final : public P2pLink {
 public:
  MessageP2pLink(Device& device, const P2pEnds& ends, DType dtype, WireCounters& sent)
      : device_(device), ends_(ends), dtype_(dtype), sent_(sent) {}

  void begin(int tensors, std::int64_t elems) override {
    ECHELON_CHECK_EQ(to_post_, 0, "the previous step had fewer passes than were announced");
    if (elems_ != elems) {
      plan_ = ends_.sends ? make_send_to(ends_.peer, elems) : make_receive_from(ends_.peer, elems);
      for (TransferBuffer& buffer : buffers_) {
        buffer.ticket.wait();
        buffer.memory = device_.allocate_host(static_cast<std::size_t>(elems) * size_of(dtype_));
      }
      elems_ = elems;
    }
    if (ends_.sends) return;
    to_post_ = tensors;
    for (std::size_t b = 0; b < kTransferBuffers && to_post_ > 0; ++b) post();
  }

  void send(const Tensor& tensor) override {
    TransferBuffer& buffer = buffers_[next_];
    next_ = (next_ + 1) % kTransferBuffers;
    wait(buffer);
    ++sent_.messages_sent;
    sent_.bytes_sent += tensor.bytes();
    device_.to_host(buffer.memory.data(), tensor.data, tensor.bytes());
    submit(buffer);
  }

  // Buffers are taken in the order in which they were posted.
  void receive(const Tensor& tensor) override {
    // Near the end fewer buffers are posted than there are: the oldest posted one is the first valid from `next_` on.
    TransferBuffer* oldest = nullptr;
    for (std::size_t b = 0; b < kTransferBuffers && !oldest; ++b) {
      TransferBuffer& buffer = buffers_[(next_ + b) % kTransferBuffers];
      if (buffer.ticket.valid()) oldest = &buffer;
    }
    ECHELON_CHECK(oldest, "begin() did not announce this tensor");
    wait(*oldest);
    device_.to_device(tensor.data, oldest->memory.data(), tensor.bytes());
    oldest->ticket = {};
    if (to_post_ > 0) post();
  }

  void finish() override {
    for (TransferBuffer& buffer : buffers_)
      if (ends_.sends) wait(buffer);
  }

 private:
  struct TransferBuffer {
    Memory memory;
    Ticket ticket;
  };

  void wait(const TransferBuffer& buffer) {
    const WatchedSpan span(SpanKind::split_wait);
    buffer.ticket.wait();
  }
  void submit(TransferBuffer& buffer) {
    buffer.ticket = ends_.group.submit(
        {.plan = plan_, .data = buffer.memory.data(), .dtype = dtype_, .channel = ends_.channel, .after = nullptr});
  }
  // Posts a receive into the buffer that is used after those already posted.
  void post() {
    TransferBuffer& buffer = buffers_[next_];
    next_ = (next_ + 1) % kTransferBuffers;
    --to_post_;
    submit(buffer);
  }

  Device& device_;
  const P2pEnds ends_;
  const DType dtype_;
  WireCounters& sent_;
  std::int64_t elems_ = 0;  // elements per tensor of the plan
  std::shared_ptr<const Plan> plan_;
  std::array<TransferBuffer, kTransferBuffers> buffers_;
  std::size_t next_ = 0;  // buffer to use
  int to_post_ = 0;       // receives that are not posted yet
};

}  // namespace

std::unique_ptr<P2pLink> make_message_p2p_link(Device& device, const P2pEnds& ends, DType dtype, WireCounters& sent) {
  return std::make_unique<MessageP2pLink>(device, ends, dtype, sent);
}

}  // namespace echelon::inline parallel
