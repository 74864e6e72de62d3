// SPDX-License-Identifier: Apache-2.0
// State that a context shares with the contexts beside it and with its memory blocks and events, which may outlive
// them. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/handles.hpp"
#include "device/device.hpp"
#include "device/fallback.hpp"

namespace echelon::cuda {

class Card {
 public:
  Card(int index, const DeviceOptions& options)
      : index_(index), options_(options), fallbacks_(options.allow_fallback) {}
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  int index() const { return index_; }
  const DeviceOptions& options() const { return options_; }
  Fallbacks& fallbacks() { return fallbacks_; }

  // Makes this the current device of the calling thread (CUDA has one per thread); every entry point calls it first.
  // EnvironmentError if the card has failed before.
  void use() const;
  // Declares the content of the card undefined: every later use() throws. The first reason is kept.
  void fail(const std::string& reason);

  // While a watch is set (sums between ranks), waits call it again and again instead of blocking inside the driver, so
  // that an exception of it ends the wait. Null: none.
  void watch(std::function<void()> look);
  void wait(cudaStream_t stream);
  void wait(cudaEvent_t event);

  // Events without timing, which are reused.
  cudaEvent_t take_event();
  void give_back(cudaEvent_t event) noexcept;

  // Bytes allocated on the device.
  std::atomic<std::size_t> now_bytes = 0, peak_bytes = 0;

 private:
  template <class Passed, class Block>
  void wait_for(const Passed& has_passed, const Block& block);

  const int index_;
  const DeviceOptions options_;
  Fallbacks fallbacks_;
  std::atomic<bool> failed_ = false, watched_ = false;
  mutable std::mutex mutex_;
  std::string reason_;
  std::function<void()> look_;
  std::vector<OwnedEvent> events_;
};

}  // namespace echelon::cuda
