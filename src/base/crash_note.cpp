// SPDX-License-Identifier: Apache-2.0
#include "base/crash_note.hpp"

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "base/error.hpp"
#include "base/stretch.hpp"

namespace echelon::inline base {
namespace {

thread_local const char* what_now = nullptr;
thread_local const char* file_now = nullptr;

void print(const char* text) { [[maybe_unused]] const ssize_t wrote = ::write(STDERR_FILENO, text, std::strlen(text)); }

const char* name_of_signal(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    default: return "SIGABRT";
  }
}

// Only calls functions that are async-signal-safe.
void explain(int signal) {
  if (what_now != nullptr) {
    for (const char* part :
         {"echelon: error: ", file_now, ": the program crashed (", name_of_signal(signal), ") while ", what_now,
          " it: the file is damaged, or has a form that crashes the library that reads it\n"})
      print(part);
    ::_exit(kExitData);
  }
  std::array<void*, 64> frames{};
  if (current_stretch().name.load(std::memory_order_relaxed) == kStartOfMpi) {
    for (const char* part : {"echelon: error: ", name_of_signal(signal),
                             " in MPI_Init: the MPI library crashed while this rank connected to the others, before "
                             "echelon began; a second try of the same command may succeed. At\n"})
      print(part);
    ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), frames.size()), STDERR_FILENO);
    ::_exit(kExitLostRank);
  }
  print("echelon: error: crashed by ");
  print(name_of_signal(signal));
  print(", at\n");
  ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), frames.size()), STDERR_FILENO);
  print(kReportIt);
  std::raise(signal);  // SA_RESETHAND has restored the default action
}

}  // namespace

CrashNote::CrashNote(const char* what, const char* file) : outer_what_(what_now), outer_file_(file_now) {
  file_now = file;
  what_now = what;
}

CrashNote::~CrashNote() {
  what_now = outer_what_;
  file_now = outer_file_;
}

bool explain_crashes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  std::array<void*, 1> frame{};
  ::backtrace(frame.data(), frame.size());  // loads the unwinding library now, because that allocates
  struct sigaction action {};
  action.sa_handler = explain;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(signal, &action, nullptr);
  return true;
#endif
}

}  // namespace echelon::inline base
