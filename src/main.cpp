// SPDX-License-Identifier: Apache-2.0
// Turns exceptions into exit codes, and does nothing else.
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>

#include "base/crash_note.hpp"
#include "base/error.hpp"
#include "base/failure.hpp"
#include "base/log.hpp"
#include "base/standard_output.hpp"
#include "cli/options.hpp"
#include "h5/file.hpp"
#include "job/signals.hpp"

namespace {

int fail(int code, const std::string& text) {
  echelon::flush_log();
  std::fprintf(stderr, "echelon: error: %s\n%s", text.c_str(),
               code == echelon::kExitInternal ? echelon::kReportIt : "");
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    echelon::hold_signals();  // until the verb installs handlers for them, or is known to have none
    echelon::explain_crashes();
    echelon::guard_standard_streams();
    echelon::h5::initialise();
    return echelon::cli::main_of_cli(argc, argv);
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0)  // fmt::print throws if standard output is full
      if (const auto* system = dynamic_cast<const std::system_error*>(&error))
        return fail(echelon::kExitEnvironment, "standard output cannot be written: " + system->code().message());
    const echelon::Failure failure = echelon::failure_of(error);
    return fail(failure.code, failure.text);
  }
}
