// What an exchange sends from: the host's view of an arena.
//
// On host devices it is the arena itself. On others it is pinned memory of the arena's size; ranges are copied out in
// stream order (the transport starts once the returned event has passed) and back in.
#pragma once

#include <memory>

#include "device/arenas.hpp"

namespace echelon {

class Staging {
 public:
  explicit Staging(Arenas& arenas);

  // Host memory of the gradients of this range; valid where fetch's event has passed.
  void* gradients(ArenaRange range) const;
  // Enqueues the copy to the host; null where there is nothing to wait for.
  std::shared_ptr<const Event> fetch(ArenaRange range);
  // Enqueues the copy back to the device.
  void store(ArenaRange range);

 private:
  std::size_t bytes_of(std::int64_t elems) const { return static_cast<std::size_t>(elems) * size_of(arenas_.dtype()); }

  Arenas& arenas_;
  Memory host_;  // empty on host devices
};

}  // namespace echelon
