// Standard output as a result that must be written completely: a full device or a closed pipe is an error.
#pragma once

namespace echelon::inline base {

// Flushes standard output. Throws EnvironmentError (with the system's reason, where it is still known) if any text
// printed with stdio or fmt since the start of the process could not be written. Called by cli/args.cpp after every
// verb whose result is what it prints; std::cout has a buffer of its own and is not covered.
void finish_standard_output();

}  // namespace echelon::inline base
