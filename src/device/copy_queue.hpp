// SPDX-License-Identifier: Apache-2.0
// Copies from the host to a device on a separate queue, concurrently with the ops of the device's stream.
//
// The queue has a number of slots that are used in turn. The device's thread uses a slot as follows:
//   begin(slot)    waits until the slot's last copies have been read, so that their host memory may be written. Copies
//                  enqueued from now on start after the ops that were enqueued before the slot's last release
//   copy(..)       enqueues a copy and returns at once
//   end(slot)      ops enqueued on the device's stream from now on start after the slot's copies
//   release(slot)  ops enqueued from now on no longer read the data of the slot's copies
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
