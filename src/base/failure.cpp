// SPDX-License-Identifier: Apache-2.0
#include "base/failure.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <system_error>

#include "base/limits.hpp"

namespace echelon::inline base {

Failure failure_of(const std::exception& error) {
  if (const auto* own = dynamic_cast<const Error*>(&error)) return {own->code(), own->what()};
  if (dynamic_cast<const std::bad_alloc*>(&error)) return {kExitMemory, "out of memory" + limits_of_process_text()};
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return {kExitEnvironment, fmt::format("{}: {}", file->path1().string(), file->code().message())};
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    if (system->code() == std::errc::resource_unavailable_try_again)  // thrown by std::thread
      return {kExitEnvironment, no_thread_text()};
    return {kExitEnvironment, system->what()};
  }
  return {kExitInternal, error.what()};
}

}  // namespace echelon::inline base
