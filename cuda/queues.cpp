// SPDX-License-Identifier: Apache-2.0
#include "cuda/queues.hpp"

#include <utility>
#include <vector>

#include "base/check.hpp"
#include "cuda/check.hpp"

namespace echelon::cuda {
namespace {

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(const Context& context) : card_(context.shared_card()), event_(card_->take_event()) {
    ECHELON_CUDA(cudaEventRecord(event_.get(), context.stream()));
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override { card_->give_back(event_.release()); }
  bool ready() const override {
    card_->use();
    return ECHELON_CUDA_PASSED(cudaEventQuery(event_.get()));
  }
  void wait() const override { card_->wait(event_.get()); }

 private:
  std::shared_ptr<Card> card_;
  OwnedEvent event_;
};

class CudaTimer final : public DeviceTimer {
 public:
  explicit CudaTimer(const Context& context) : context_(context) {}
  void mark(std::size_t i) override {
    context_.use();
    while (marks_.size() <= i) marks_.push_back(make_event(cudaEventDefault));
    ECHELON_CUDA(cudaEventRecord(marks_[i].get(), context_.stream()));
  }
  bool passed(std::size_t i) const override {
    context_.use();
    return ECHELON_CUDA_PASSED(cudaEventQuery(marks_.at(i).get()));
  }
  void wait(std::size_t i) const override { context_.card().wait(marks_.at(i).get()); }
  double seconds(std::size_t from, std::size_t to) const override {
    context_.use();
    float ms = 0;
    ECHELON_CUDA(cudaEventElapsedTime(&ms, marks_.at(from).get(), marks_.at(to).get()));
    return 1e-3 * static_cast<double>(ms);
  }

 private:
  const Context& context_;
  std::vector<OwnedEvent> marks_;
};

class CudaCopyQueue final : public CopyQueue {
 public:
  CudaCopyQueue(const Context& context, std::size_t slots) : context_(context) {
    context_.use();
    stream_ = make_stream();
    for (std::size_t i = 0; i < slots; ++i) slots_.push_back({make_event(), make_event()});
  }
  CudaCopyQueue(const CudaCopyQueue&) = delete;
  CudaCopyQueue& operator=(const CudaCopyQueue&) = delete;
  ~CudaCopyQueue() override {
    cudaSetDevice(context_.index());
    cudaStreamSynchronize(stream_.get());
  }

  // An event that was never recorded counts as passed.
  void begin(std::size_t slot) override {
    context_.card().wait(slots_.at(slot).copied.get());
    ECHELON_CUDA(cudaStreamWaitEvent(stream_.get(), slots_[slot].released.get(), 0));
  }
  void copy(void* dst, const void* src, std::size_t bytes) override {
    if (bytes == 0) return;
    context_.use();
    ECHELON_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, stream_.get()));
  }
  void end(std::size_t slot) override {
    context_.use();
    ECHELON_CUDA(cudaEventRecord(slots_.at(slot).copied.get(), stream_.get()));
    ECHELON_CUDA(cudaStreamWaitEvent(context_.stream(), slots_[slot].copied.get(), 0));
  }
  void release(std::size_t slot) override {
    context_.use();
    ECHELON_CUDA(cudaEventRecord(slots_.at(slot).released.get(), context_.stream()));
  }

 private:
  struct Slot {
    OwnedEvent copied, released;
  };
  const Context& context_;
  OwnedStream stream_;  // separate from the compute stream
  std::vector<Slot> slots_;
};

}  // namespace

std::unique_ptr<Event> record_event(const Context& context) { return std::make_unique<CudaEvent>(context); }

std::unique_ptr<DeviceTimer> make_timer(const Context& context) { return std::make_unique<CudaTimer>(context); }

std::unique_ptr<CopyQueue> make_copy_queue(const Context& context, std::size_t slots) {
  return std::make_unique<CudaCopyQueue>(context, slots);
}

}  // namespace echelon::cuda
