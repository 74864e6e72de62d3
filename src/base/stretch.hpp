// SPDX-License-Identifier: Apache-2.0
// The stretch of a launch that this process is in while no run is watched: a start or end of MPI, which may hang
// because of a lost rank. The thread that goes through the stretches writes it; the thread that limits them reads it
// (job/launch_watch.hpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace echelon::inline base {

// The stretch in which the MPI library controls the process.
inline constexpr const char* kStartOfMpi = "MPI_Init";

struct Stretch {
  std::atomic<const char*> name{nullptr};  // null: another watchdog is active
  std::atomic<std::int64_t> number{0};     // number of stretches begun so far
  std::atomic<bool> run_has_ended{false};  // only the end of MPI is left
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
