// SPDX-License-Identifier: Apache-2.0
// Handles ops that a library does not run as it should: slow replacements are refused unless device.allow_fallback
// permits them, and every replacement is reported.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace echelon::inline device {

class Fallbacks {
 public:
  explicit Fallbacks(bool allowed) : allowed_(allowed) {}

  // Reports that the op must run as `instead`, which is slow, for this reason. Throws EnvironmentError that names
  // device.allow_fallback unless it is set; otherwise logs a warning, once for each op and reason. Any thread.
  void replace(const std::string& op, const std::string& reason, const std::string& instead);
  // Logs a warning, once for each op and reason: the library runs the op, but not in its best way. Any thread.
  void note(const std::string& op, const std::string& reason);

 private:
  bool first(const std::string& op, const std::string& reason);

  const bool allowed_;
  std::mutex mutex_;
  std::set<std::string> told_;
};

}  // namespace echelon::inline device
