// The stretch of a launch that this process is in, where no run is watched: a start or end of MPI that may hang for a
// rank that is lost. Written by the thread that goes through them, read by the one that limits them
// (job/launch_watch.hpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace echelon::inline base {

// In it the process is in the hands of the MPI library.
inline constexpr const char* kStartOfMpi = "MPI_Init";

struct Stretch {
  std::atomic<const char*> name{nullptr};  // null: another watchdog is on duty
  std::atomic<std::int64_t> number{0};     // how many have begun
  std::atomic<bool> run_has_ended{false};  // what is left is MPI's end
};
inline Stretch& current_stretch() {
  static Stretch stretch;
  return stretch;
}

// `name` must be a string literal, or null.
inline void enter_stretch(const char* name) {
  current_stretch().name.store(name, std::memory_order_relaxed);
  current_stretch().number.fetch_add(1, std::memory_order_release);
}

}  // namespace echelon::inline base
