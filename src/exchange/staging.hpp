// SPDX-License-Identifier: Apache-2.0
// The host's view of an arena, from which an exchange sends and into which it receives.
//
// On host devices it is the arena itself. On other devices it is pinned memory of the arena's size; ranges are copied
// to the host and back in stream order, and the transport starts once the returned event has passed.
#pragma once

#include <memory>

#include "base/dtype.hpp"
#include "device/arenas.hpp"

namespace echelon::inline exchange {

class Staging {
 public:
  // `arena` holds `elems` values on the device: gradients, weights or an optimiser state.
  Staging(Device& device, void* arena, std::int64_t elems, DType dtype);

  // The host address of this element; its value is valid once the event of `fetch` has passed.
  void* at(std::int64_t elem) const;
  // Enqueues the copy to the host. Returns null if there is nothing to wait for.
  std::shared_ptr<const Event> fetch(ArenaRange range);
  // Enqueues the copy back to the device.
  void store(ArenaRange range);

 private:
  std::size_t bytes_of(std::int64_t elems) const { return static_cast<std::size_t>(elems) * size_of(dtype_); }
  std::byte* on_device(std::int64_t elem) const { return static_cast<std::byte*>(arena_) + bytes_of(elem); }

  Device& device_;
  void* arena_;
  DType dtype_;
  Memory host_;  // empty on host devices
};

}  // namespace echelon::inline exchange
