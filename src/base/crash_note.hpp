// What a thread is doing that another's code may crash in, for the message if it does.
//
// A damaged file whose structure has no checksums can crash the library that reads it. No error can be thrown from
// there: the process ends, with a line that names the file and the exit code of damaged data.
#pragma once

namespace echelon::inline base {

// From its construction to its end, on this thread; the texts outlive it. Notes nest: the innermost one counts. Free of
// system calls.
class CrashNote {
 public:
  // "the HDF5 library read", "data/train/a.h5"
  CrashNote(const char* what, const char* file);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;

 private:
  const char *outer_what_, *outer_file_;
};

// From now on a signal of a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) inside a note ends the process with that
// line and kExitData; outside of one it prints the call stack and ends the process as the signal does. To be called
// before MPI is initialised, which keeps handlers that are there. False, and no effect, in sanitised builds.
bool explain_crashes();

}  // namespace echelon::inline base
