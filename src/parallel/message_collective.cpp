// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <numeric>

#include "base/spans.hpp"
#include "comm/collective/algorithms.hpp"
#include "parallel/interleave.hpp"
#include "parallel/replica_collective.hpp"

namespace echelon::inline parallel {
namespace {

class MessageCollective final : public ReplicaCollective {
 public:
  MessageCollective(Device& device, Engine& ranks, int channel, WireCounters& sent)
      : device_(device), ranks_(ranks), channel_(channel), sent_(sent) {}

  void sum(const Tensor& from, const Tensor& to) override {
    const std::int64_t elems = to.shape.elems();
    if (elems != elems_) {
      plan_ = make_allreduce("halving_doubling", {.rank = ranks_.rank(), .ranks = ranks_.size(), .elems = elems});
      if (!device_.on_host()) buffer_ = device_.allocate_host(to.bytes());
      elems_ = elems;
    }
    if (device_.on_host()) {
      std::memcpy(to.data, from.data, to.bytes());
      return run(to.data, to.dtype);
    }
    device_.to_host(buffer_.data(), from.data, from.bytes());
    run(buffer_.data(), to.dtype);
    device_.to_device(to.data, buffer_.data(), to.bytes());
  }

  void gather(const GatherForm& form, const Tensor& from, const Tensor& to) override {
    const std::int64_t elems = to.shape.elems();
    if (elems != elems_) {
      std::vector<std::int64_t> blocks;
      begins_ = {0};
      for (const std::int64_t units : form.units) {
        blocks.push_back(form.outer * units * form.inner);
        begins_.push_back(begins_.back() + blocks.back());
      }
      plan_ = make_allgather_blocks(ranks_.rank(), blocks);
      buffer_ = device_.allocate_host(to.bytes());
      if (!device_.on_host()) whole_ = device_.allocate_host(to.bytes());
      elems_ = elems;
    }
    const auto at = [&](int rank) {
      return static_cast<std::byte*>(buffer_.data()) +
             static_cast<std::size_t>(begins_[static_cast<std::size_t>(rank)]) * size_of(to.dtype);
    };
    device_.to_host(at(ranks_.rank()), from.data, from.bytes());
    run(buffer_.data(), to.dtype);
    std::vector<const std::byte*> blocks;
    for (int rank = 0; rank < ranks_.size(); ++rank) blocks.push_back(at(rank));
    interleave(form, blocks, size_of(to.dtype), device_.on_host() ? to.data : whole_.data());
    if (!device_.on_host()) device_.to_device(to.data, whole_.data(), to.bytes());
  }

 private:
  void run(void* data, DType dtype) {
    const WatchedSpan span(SpanKind::split_wait);
    const Ticket ticket =
        ranks_.submit({.plan = plan_, .data = data, .dtype = dtype, .channel = channel_, .after = nullptr});
    ticket.wait();
    sent_ += ticket.wire();
  }

  Device& device_;
  Engine& ranks_;
  const int channel_;
  WireCounters& sent_;
  std::int64_t elems_ = -1;  // size of the tensor that the following members are for
  std::shared_ptr<const Plan> plan_;
  Memory buffer_;                     // sums if the host cannot access device memory; gathers: blocks of all ranks
  Memory whole_;                      // gathers if the host cannot access it
  std::vector<std::int64_t> begins_;  // gathers: first element of each rank's block in the buffer; and their end
};

}  // namespace

std::unique_ptr<ReplicaCollective> make_message_collective(Device& device, Engine& ranks, int channel,
                                                           WireCounters& sent) {
  return std::make_unique<MessageCollective>(device, ranks, channel, sent);
}

}  // namespace echelon::inline parallel
