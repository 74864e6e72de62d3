// SPDX-License-Identifier: Apache-2.0
#include "cuda/card.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace echelon::cuda {
namespace {

// Pause between two calls of the watch; the system extends it to about 60 us.
constexpr std::chrono::microseconds kLookEvery{10};

}  // namespace

Card::~Card() { cudaSetDevice(index_); }

void Card::use() const {
  if (failed_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    throw EnvironmentError(fmt::format("the CUDA device failed earlier and cannot be used again: {}", reason_));
  }
  ECHELON_CUDA(cudaSetDevice(index_));
}

void Card::fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return;
  reason_ = reason;
  failed_.store(true, std::memory_order_release);
}

void Card::watch(std::function<void()> look) {
  const std::lock_guard lock(mutex_);
  look_ = std::move(look);
  watched_ = look_ != nullptr;
}

template <class Passed, class Block>
void Card::wait_for(const Passed& has_passed, const Block& block) {
  use();
  if (!watched_) return block();
  for (;;) {
    if (has_passed()) return;
    std::function<void()> look;
    {
      const std::lock_guard lock(mutex_);
      look = look_;
    }
    if (look) look();
    std::this_thread::sleep_for(kLookEvery);
  }
}

void Card::wait(cudaStream_t stream) {
  wait_for([&] { return ECHELON_CUDA_PASSED(cudaStreamQuery(stream)); },
           [&] { ECHELON_CUDA(cudaStreamSynchronize(stream)); });
}

void Card::wait(cudaEvent_t event) {
  wait_for([&] { return ECHELON_CUDA_PASSED(cudaEventQuery(event)); },
           [&] { ECHELON_CUDA(cudaEventSynchronize(event)); });
}

cudaEvent_t Card::take_event() {
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      const cudaEvent_t event = events_.back().release();
      events_.pop_back();
      return event;
    }
  }
  return make_event().release();
}

void Card::give_back(cudaEvent_t event) noexcept {
  OwnedEvent owned(event);
  try {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(owned));
  } catch (...) {  // no memory for the list: the event is destroyed
  }
}

}  // namespace echelon::cuda
