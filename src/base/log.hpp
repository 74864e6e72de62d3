// Log of a run. Rank 0 writes to standard output (and into run.log); another rank only when it
// has a warning or an error, with its rank in front, on standard error. spdlog does the work; its headers stay in
// log.cpp.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace echelon::inline base {

enum class LogLevel { debug, info, warning, error };

void log_line(LogLevel level, std::string_view text);
// From now on lines also go to this file, appended. Throws EnvironmentError where it cannot be opened.
void log_to_file(const std::string& path);
// Least level that is shown (default info; ECHELON_LOG=debug|info|warning|error sets it).
void set_log_level(LogLevel level);
void flush_log();

template <class... Args>
void log_debug(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::debug, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::warning, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::error, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace echelon::inline base
