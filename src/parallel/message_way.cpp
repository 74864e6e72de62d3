#include <array>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "comm/collective/message.hpp"
#include "parallel/way.hpp"

namespace echelon {
namespace {

class MessageWay final : public Way {
 public:
  MessageWay(Device& device, const WayEnds& ends, DType dtype, Tally& tally)
      : device_(device), ends_(ends), dtype_(dtype), tally_(tally) {}

  void begin(int tensors, std::int64_t elems) override {
    ECHELON_CHECK_EQ(to_post_, 0, "passes of the step before are missing");
    if (elems_ != elems) {
      plan_ = ends_.sends ? make_send_to(ends_.peer, elems) : make_receive_from(ends_.peer, elems);
      for (Box& box : boxes_) {
        box.ticket.wait();
        box.memory = device_.allocate_host(static_cast<std::size_t>(elems) * size_of(dtype_));
      }
      elems_ = elems;
    }
    if (ends_.sends) return;
    to_post_ = tensors;
    for (std::size_t b = 0; b < kBoxes && to_post_ > 0; ++b) post();
  }

  void send(const Tensor& tensor) override {
    Box& box = boxes_[next_];
    next_ = (next_ + 1) % kBoxes;
    wait(box);
    ++tally_.sent.messages_sent;
    tally_.sent.bytes_sent += tensor.bytes();
    device_.to_host(box.memory.data(), tensor.data, tensor.bytes());
    submit(box);
  }

  // Boxes are taken in the order in which they were posted.
  void receive(const Tensor& tensor) override {
    // With fewer posts left than boxes, `next_` has run ahead by as many as are out.
    Box* oldest = nullptr;
    for (std::size_t b = 0; b < kBoxes && !oldest; ++b) {
      Box& box = boxes_[(next_ + b) % kBoxes];
      if (box.ticket.valid()) oldest = &box;
    }
    ECHELON_CHECK(oldest, "nothing was to come");
    wait(*oldest);
    device_.to_device(tensor.data, oldest->memory.data(), tensor.bytes());
    oldest->ticket = {};
    if (to_post_ > 0) post();
  }

  void finish() override {
    for (Box& box : boxes_)
      if (ends_.sends) wait(box);
  }

 private:
  struct Box {
    Memory memory;
    Ticket ticket;
  };

  void wait(const Box& box) {
    const ScopedTimer timer(tally_.waited_s);
    box.ticket.wait();
  }
  void submit(Box& box) {
    box.ticket = ends_.group.submit(
        {.plan = plan_, .data = box.memory.data(), .dtype = dtype_, .channel = ends_.channel, .after = nullptr});
  }
  // Into the box that is used next after those posted already.
  void post() {
    Box& box = boxes_[next_];
    next_ = (next_ + 1) % kBoxes;
    --to_post_;
    submit(box);
  }

  Device& device_;
  const WayEnds ends_;
  const DType dtype_;
  Tally& tally_;
  std::int64_t elems_ = 0;  // that the plan is for
  std::shared_ptr<const Plan> plan_;
  std::array<Box, kBoxes> boxes_;
  std::size_t next_ = 0;  // box to use
  int to_post_ = 0;       // receives that are not posted yet
};

}  // namespace

std::unique_ptr<Way> make_message_way(Device& device, const WayEnds& ends, DType dtype, Tally& tally) {
  return std::make_unique<MessageWay>(device, ends, dtype, tally);
}

}  // namespace echelon
