// SPDX-License-Identifier: Apache-2.0
// Copies batches to a device whose memory the host cannot access, concurrently with its ops.
//
// There are two slots, used in turn, each with page-locked host memory and device memory. The host gathers the tensors
// of a micro-batch in the host memory, one copy on a separate queue transfers them while the device still computes the
// previous micro-batch, and copies on the device, in stream order, move them to where ops read them. Nothing is
// allocated from batch to batch, and the host waits only when it is two batches ahead. On a host device tensors are
// copied at once.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "device/device.hpp"

namespace echelon::inline device {

class Upload {
 public:
  // `bytes` is the largest size of one micro-batch. The device must outlive this object. Throws MemoryError above the
  // device's limit.
  Upload(Device& device, std::size_t bytes);
  Upload(const Upload&) = delete;

  // The device's thread calls put() for the tensors of one micro-batch, between begin() and end(): the content of `src`
  // is at `dst`, memory of the device, for ops that are enqueued after end(). `src` may be overwritten when put()
  // returns.
  void begin();
  void put(void* dst, const void* src, std::size_t bytes);
  void end();

  std::size_t device_bytes() const;

 private:
  static constexpr std::size_t kSlots = 2;
  struct Slot {
    Memory host, device;
  };
  struct Piece {
    void* dst = nullptr;
    std::size_t at = 0, bytes = 0;  // at: offset in the slot
  };

  Device& device_;
  std::unique_ptr<CopyQueue> queue_;  // null: the device is the host
  std::array<Slot, kSlots> slots_;
  std::size_t slot_ = 0, used_ = 0;
  std::vector<Piece> pieces_;  // pieces of the micro-batch
};

}  // namespace echelon::inline device
