// What an exchange sends from and receives into: the host's view of an arena.
//
// On host devices it is the arena itself. On others it is pinned memory of the arena's size; ranges are copied out in
// stream order (the transport starts once the returned event has passed) and back in.
#pragma once

#include <memory>

#include "base/dtype.hpp"
#include "device/arenas.hpp"

namespace echelon::inline exchange {

class Staging {
 public:
  // Of an arena of `elems` values on the device: gradients, weights, a state of the optimiser.
  Staging(Device& device, void* arena, std::int64_t elems, DType dtype);

  // Host memory of the value at this place; valid where fetch's event has passed.
  void* at(std::int64_t elem) const;
  // Enqueues the copy to the host; null where there is nothing to wait for.
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
