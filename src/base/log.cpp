// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"

namespace echelon::inline base {
namespace {

struct Sinks {
  std::shared_ptr<spdlog::logger> out =
      std::make_shared<spdlog::logger>("out", std::make_shared<spdlog::sinks::stdout_sink_mt>());
  std::shared_ptr<spdlog::logger> err =
      std::make_shared<spdlog::logger>("err", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  std::shared_ptr<spdlog::logger> file;
  std::mutex mutex;

  Sinks() {
    out->set_pattern("%v");
    err->set_pattern("%v");
    out->flush_on(spdlog::level::info);
    err->flush_on(spdlog::level::debug);
    LogLevel level = LogLevel::info;
    const char* requested = std::getenv("ECHELON_LOG");
    const std::string_view text = requested ? requested : "";
    if (text == "debug") level = LogLevel::debug;
    if (text == "warning") level = LogLevel::warning;
    if (text == "error") level = LogLevel::error;
    set(level);
  }

  static spdlog::level::level_enum of(LogLevel level) {
    switch (level) {
      case LogLevel::debug: return spdlog::level::debug;
      case LogLevel::info: return spdlog::level::info;
      case LogLevel::warning: return spdlog::level::warn;
      case LogLevel::error: return spdlog::level::err;
    }
    return spdlog::level::info;
  }

  void set(LogLevel level) {
    out->set_level(of(level));
    err->set_level(of(level));
  }
};

Sinks& sinks() {
  static Sinks* held = new Sinks;  // never destroyed: threads may log until the process ends
  return *held;
}

}  // namespace

void log_line(LogLevel level, std::string_view text) {
  Sinks& s = sinks();
  const int rank = thread_rank();
  const bool aloud = level >= LogLevel::warning;
  if (rank > 0 && !aloud) return;
  std::string line;
  if (rank > 0) line += fmt::format("[rank {}] ", rank);
  if (level == LogLevel::warning) line += "warning: ";
  if (level == LogLevel::error) line += "error: ";
  line += escaped_for_terminal(std::string(text));
  (aloud ? s.err : s.out)->log(Sinks::of(level), line);
  const std::lock_guard lock(s.mutex);
  if (s.file) s.file->log(Sinks::of(level), line);
}

void log_to_file(const std::string& path) {
  Sinks& s = sinks();
  const std::lock_guard lock(s.mutex);
  try {
    s.file = std::make_shared<spdlog::logger>("file", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
  } catch (const spdlog::spdlog_ex& error) {
    throw EnvironmentError(fmt::format("{}: cannot be opened for the log: {}", path, error.what()));
  }
  s.file->set_pattern("%Y-%m-%d %H:%M:%S.%e %v");
  s.file->flush_on(spdlog::level::info);
  s.file->set_level(spdlog::level::debug);
}

void set_log_level(LogLevel level) { sinks().set(level); }

void flush_log() {
  Sinks& s = sinks();
  s.out->flush();
  s.err->flush();
  const std::lock_guard lock(s.mutex);
  if (s.file) s.file->flush();
}

}  // namespace echelon::inline base
