// The log of a run. Debug and info lines are written by rank 0 alone, to standard output; warnings and errors by every
// rank, to standard error, with "[rank 3] " in front on ranks above 0. The rank is that of the thread (base/check.hpp).
// Lines go to run.log too once log_to_file was called. Lines of several threads are not mixed. spdlog does the work;
// its headers stay in log.cpp.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace echelon::inline base {

enum class LogLevel { debug, info, warning, error };

// Any thread. One line without its newline; "warning: " or "error: " is put in front. Flushed at once from info on.
void log_line(LogLevel level, std::string_view text);
// From now on lines of this process also go to this file, appended, with date and time, whatever the log level; a file
// named before is closed. Throws EnvironmentError where it cannot be opened.
void log_to_file(const std::string& path);
// Least level that is printed (default info; ECHELON_LOG=debug|info|warning|error sets it at the first line, any other
// text counts as info).
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
