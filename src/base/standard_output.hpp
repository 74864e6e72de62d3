// Standard output and error: nothing of another's reaches a terminal, a reader that is gone ends nothing, and what
// could not be written is an error.
#pragma once

#include <string>

namespace echelon::inline base {

// From now on all that is printed to stdout and stderr passes escaped_for_terminal, whoever prints it; and what is
// printed for a reader that is gone (`echelon scale .. | head`) is dropped without a word: PIPE is ignored, and a verb
// ends with its own code. Called before anything is printed; std::cout and std::cerr are not covered.
void guard_standard_streams();

// Puts a line over the one on which a terminal stands, behind all that was printed; "": clears it.
void draw_over_line(const std::string& text);

// Flushes standard output. Throws EnvironmentError (with the system's reason, where it is still known) if any text
// printed with stdio or fmt since the start of the process could not be written. Called by cli/args.cpp after every
// verb whose result is what it prints.
void finish_standard_output();

}  // namespace echelon::inline base
