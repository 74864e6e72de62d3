// SPDX-License-Identifier: Apache-2.0
#include "device/fallback.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"

namespace echelon::inline device {

bool Fallbacks::first(const std::string& op, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  return told_.insert(op + '\n' + reason).second;
}

void Fallbacks::replace(const std::string& op, const std::string& reason, const std::string& instead) {
  if (!allowed_)
    throw EnvironmentError(fmt::format("{}: {}; set device.allow_fallback = true to permit {}", op, reason, instead));
  if (first(op, reason))
    log_warning("{}: {}; it runs as {}, because device.allow_fallback is set", op, reason, instead);
}

void Fallbacks::note(const std::string& op, const std::string& reason) {
  if (first(op, reason)) log_warning("{}: {}", op, reason);
}

}  // namespace echelon::inline device
