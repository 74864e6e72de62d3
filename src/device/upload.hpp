// Batches on their way to a device out of the host's reach, copied beside its ops.
//
// There are two places, used by turns, each with page-locked memory on the host and memory on the device. The host
// gathers the tensors of a micro-batch in the former, one copy brings them across on a queue of its own while the
// device still computes the micro-batch before, and copies on the device, in stream order, move them to where ops read
// them. Nothing is allocated from batch to batch, and the host waits only where it is two batches ahead. On a host
// device tensors are copied at once.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "device/device.hpp"

namespace echelon::inline device {

class Upload {
 public:
  // For up to `bytes` of one micro-batch. The device outlives it. MemoryError above the device's limit.
  Upload(Device& device, std::size_t bytes);
  Upload(const Upload&) = delete;

  // Of one micro-batch, between begin and end, by the device's thread: what `src` holds is at `dst`, memory of the
  // device, for the ops that are enqueued after end(). `src` may be overwritten when put() returns.
  void begin();
  void put(void* dst, const void* src, std::size_t bytes);
  void end();

  std::size_t device_bytes() const;

 private:
  static constexpr std::size_t kPlaces = 2;
  struct Place {
    Memory host, device;
  };
  struct Piece {
    void* dst = nullptr;
    std::size_t at = 0, bytes = 0;  // in the place
  };

  Device& device_;
  std::unique_ptr<CopyQueue> queue_;  // null: the device is the host
  std::array<Place, kPlaces> places_;
  std::size_t place_ = 0, used_ = 0;
  std::vector<Piece> pieces_;  // of the micro-batch
};

}  // namespace echelon::inline device
