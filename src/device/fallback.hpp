// What a device does where a library does not run an op as it should: slow replacements are refused unless
// device.allow_fallback permits them, and none goes unmentioned.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace echelon::inline device {

class Fallbacks {
 public:
  explicit Fallbacks(bool allowed) : allowed_(allowed) {}

  // The op is to run as `instead`, which is slow, for this reason. EnvironmentError that names device.allow_fallback
  // unless it is allowed, then a warning, once an op and reason. Any thread.
  void replace(const std::string& op, const std::string& reason, const std::string& instead);
  // A warning, once an op and reason: the library runs the op, but not in its best way. Any thread.
  void note(const std::string& op, const std::string& reason);

 private:
  bool first(const std::string& op, const std::string& reason);

  const bool allowed_;
  std::mutex mutex_;
  std::set<std::string> told_;
};

}  // namespace echelon::inline device
