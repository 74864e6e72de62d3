// Copies from the host to a device on a queue of their own, which run beside the ops of the device's stream.
//
// The queue has a number of slots that are used by turns. A use of a slot, by the device's thread:
//   begin(slot)    waits until the slot's last copies have been read, so that their host memory may be written; copies
//                  enqueued from now on begin after the ops that were enqueued before the slot's last release
//   copy(..)       enqueued; returns at once
//   end(slot)      ops enqueued on the device's stream from now on begin after the slot's copies
//   release(slot)  ops enqueued from now on no longer read what the slot's copies have written
#pragma once

#include <cstddef>

namespace echelon::inline device {

class CopyQueue {
 public:
  virtual ~CopyQueue() = default;
  virtual void begin(std::size_t slot) = 0;
  // `src` is memory of Device::allocate_host.
  virtual void copy(void* dst, const void* src, std::size_t bytes) = 0;
  virtual void end(std::size_t slot) = 0;
  virtual void release(std::size_t slot) = 0;
};

}  // namespace echelon::inline device
