// SPDX-License-Identifier: Apache-2.0
// Changes inputs as a disk, a network or an editor would, and in ways that break readers.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/draws.hpp"

namespace echelon::fuzz {

// Makes 1 to 8 changes of bytes: bits, bytes and blocks are overwritten, removed, doubled or moved; integers of 1 to 8
// bytes are set to boundaries, in either byte order; the input is truncated; a part of one of `others` is put in.
std::string mutate_bytes(std::string input, const std::vector<std::string>& others, Draws& draws);

// Does the same for text: lines are removed, doubled, moved or taken from `others`; numbers are set to boundaries;
// `words` are put in. One text in four also gets changes of bytes.
std::string mutate_text(std::string input, const std::vector<std::string>& others,
                        const std::vector<std::string>& words, Draws& draws);

// Returns a number at a boundary of some type, as text.
std::string boundary_text(Draws& draws);

// Splits text into lines without their ends.
std::vector<std::string> lines_of(const std::string& text);
std::string joined_lines(const std::vector<std::string>& lines);

}  // namespace echelon::fuzz
