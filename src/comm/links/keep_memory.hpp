// SPDX-License-Identifier: Apache-2.0
// Memory of abandoned messages, to which the message library may still write.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace echelon::inline comm {

// Keeps the object until the process ends. Any thread.
template <class T>
void keep_memory(std::unique_ptr<T> object) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<T>> kept;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(object));
}

}  // namespace echelon::inline comm
