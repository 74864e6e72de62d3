// SPDX-License-Identifier: Apache-2.0
// State that the ops share on one GPU: the device's number, its one compute stream, the libraries' handles on that
// stream, and memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "cuda/card.hpp"
#include "device/device.hpp"
#include "device/host_memory.hpp"

namespace echelon::cuda {

class Context {
 public:
  // Throws EnvironmentError or MemoryError; the parts made until then are freed.
  Context(int index, const DeviceOptions& options) : Context(std::make_shared<Card>(index, options)) {}
  // Returns a context of the same card with its own stream and handles. Allocations of both are counted together, and a
  // failure of one ends both.
  Context beside() const { return Context(card_); }
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void use() const { card_->use(); }
  int index() const { return card_->index(); }
  bool tf32() const { return card_->options().tf32; }  // f32 dense layers and convolutions may round their operands
  bool only_counts() const { return counted_ != nullptr; }  // memory takes no space, and nothing runs
  Card& card() const { return *card_; }
  const std::shared_ptr<Card>& shared_card() const { return card_; }
  Fallbacks& fallbacks() const { return card_->fallbacks(); }
  cudaStream_t stream() const { return stream_.get(); }
  cudnnHandle_t dnn() const { return dnn_.get(); }
  cublasHandle_t blas() const { return blas_.get(); }

  // Waits until all work enqueued on the stream is done.
  void synchronize() const { card_->wait(stream()); }

  // Allocates zero-filled memory, in stream order. MemoryError above the limit or if the card has no more.
  Memory allocate(std::size_t bytes, std::string_view tag) const;
  std::size_t allocated_bytes() const { return counted_ ? counted_->allocated_bytes() : card_->now_bytes.load(); }
  std::size_t peak_bytes() const { return counted_ ? counted_->peak_bytes() : card_->peak_bytes.load(); }

 private:
  explicit Context(std::shared_ptr<Card> card);

  std::shared_ptr<Card> card_;
  std::unique_ptr<HostMemory> counted_;  // set if allocations are only counted: the addresses are never accessed
  // Destroyed in reverse order: handles before the memory that they use, and the stream last.
  OwnedStream stream_;
  OwnedMemory blas_workspace_;
  OwnedDnn dnn_;
  OwnedBlas blas_;
};

}  // namespace echelon::cuda
