// SPDX-License-Identifier: Apache-2.0
// Notes what a thread is doing while library code may crash in it, for the message after a crash.
//
// A damaged file whose structure has no checksums can crash the library that reads it. No error can be thrown from
// there: the process ends with a line that names the file, and with the exit code for damaged data.
#pragma once

namespace echelon::inline base {

// Applies to this thread from construction to destruction; the texts must outlive it. Notes nest: the innermost one
// counts. Makes no system calls.
class CrashNote {
 public:
  // "the HDF5 library read", "data/train/a.h5"
  CrashNote(const char* what, const char* file);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;

 private:
  const char *outer_what_, *outer_file_;
};

// From now on, a crash signal (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) inside a note ends the process with that line
// and kExitData; outside of a note it prints the call stack and ends the process like the signal. Must be called before
// MPI is initialised, which keeps existing handlers. In sanitised builds it does nothing and returns false.
bool explain_crashes();

}  // namespace echelon::inline base
