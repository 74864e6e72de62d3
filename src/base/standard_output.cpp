// SPDX-License-Identifier: Apache-2.0
#include "base/standard_output.hpp"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace echelon::inline base {
namespace {

// Returns false, with errno set, on a failure. A reader that has gone is not a failure.
bool write_all(int file, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(file, text.data() + at, text.size() - at);
    if (written < 0 && errno == EPIPE) return true;
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) at += static_cast<std::size_t>(written);
  }
  return true;
}

// Writes of a stream may end within a character; its first bytes wait for the others.
struct Guarded {
  int file;
  std::string held = {};

  static ssize_t write(void* self, const char* data, std::size_t bytes) {
    auto& guarded = *static_cast<Guarded*>(self);
    std::string text = std::exchange(guarded.held, {}) + std::string(data, bytes);
    const std::size_t whole = text.size() - begun_bytes(text);
    guarded.held = text.substr(whole);
    text.resize(whole);
    return write_all(guarded.file, escaped_for_terminal(text)) ? static_cast<ssize_t>(bytes) : 0;
  }
};

// A separate stream, because stdio's would keep the error of a failed write, and fmt::print would throw. Never closed.
std::FILE* guarded(int file, std::FILE* before, int buffering) {
  std::FILE* const stream = ::fopencookie(
      new Guarded{file}, "w", {.read = nullptr, .write = &Guarded::write, .seek = nullptr, .close = nullptr});
  if (stream == nullptr) return before;
  (void)std::setvbuf(stream, nullptr, buffering, buffering == _IONBF ? 0 : BUFSIZ);
  return stream;
}

}  // namespace

void guard_standard_streams() {
  (void)std::signal(SIGPIPE, SIG_IGN);
  stdout = guarded(STDOUT_FILENO, stdout, ::isatty(STDOUT_FILENO) != 0 ? _IOLBF : _IOFBF);
  stderr = guarded(STDERR_FILENO, stderr, _IONBF);
}

void draw_over_line(const std::string& text) {
  std::fflush(stdout);
  (void)write_all(STDOUT_FILENO, "\r\x1b[2K" + escaped_for_terminal(text));
}

void finish_standard_output() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return;
  throw EnvironmentError(errno != 0 ? fmt::format("standard output cannot be written: {}", std::strerror(errno))
                                    : "standard output cannot be written");
}

}  // namespace echelon::inline base
