// Standard output as a result that has to arrive: a full device or a closed pipe is an error, not silence.
#pragma once

namespace echelon::inline base {

// Flushes standard output. Throws EnvironmentError (with the system's reason, where it is still known) if any text
// printed since the start of the process could not be written. Called after every verb whose result is what it prints.
void finish_standard_output();

}  // namespace echelon::inline base
