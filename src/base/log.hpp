// SPDX-License-Identifier: Apache-2.0
// The log of a run. Debug and info lines are written only by rank 0, to standard output; warnings and errors by every
// rank, to standard error, with the prefix "[rank 3] " on ranks above 0. The rank is that of the thread
// (base/check.hpp). After log_to_file, lines also go to run.log. Lines of several threads are not interleaved.
// Implemented with spdlog, whose headers stay in log.cpp.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace echelon::inline base {

enum class LogLevel { debug, info, warning, error };

// Writes one line; `text` has no newline. Adds "warning: " or "error: " in front. Flushes from info on. Any thread.
void log_line(LogLevel level, std::string_view text);
// From now on, also appends the lines of this process to this file, with date and time, whatever the log level. A file
// named before is closed. Throws EnvironmentError if the file cannot be opened.
void log_to_file(const std::string& path);
// Sets the lowest level that is printed (default info). ECHELON_LOG=debug|info|warning|error sets it at the first line;
// any other text counts as info.
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
