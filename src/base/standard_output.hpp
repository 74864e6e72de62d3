// SPDX-License-Identifier: Apache-2.0
// Guards standard output and error: escapes foreign text for terminals, survives readers that have gone, and reports
// text that could not be written.
#pragma once

#include <string>

namespace echelon::inline base {

// From now on everything printed to stdout and stderr, by any code, passes escaped_for_terminal. Text for a reader that
// has gone (`echelon scale .. | head`) is dropped silently: PIPE is ignored, and a verb ends with its own code. Must be
// called before anything is printed; does not cover std::cout and std::cerr.
void guard_standard_streams();

// Draws a line over the terminal's current one, after all that was printed; "": clears it.
void draw_over_line(const std::string& text);

// Flushes standard output. Throws EnvironmentError (with the system's reason, if still known) if any text printed with
// stdio or fmt since the start of the process could not be written. cli/args.cpp calls it after every verb whose result
// is its output.
void finish_standard_output();

}  // namespace echelon::inline base
