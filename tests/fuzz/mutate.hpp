// Changes of inputs: what a disk, a network or an editor does to them, and what breaks readers.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/draws.hpp"

namespace echelon::fuzz {

// 1 to 8 changes of bytes: bits, bytes and blocks overwritten, removed, doubled, moved; integers of 1 to 8 bytes set to
// boundaries, in either order; truncation; a part of one of `others`.
std::string mutate_bytes(std::string input, const std::vector<std::string>& others, Draws& draws);

// The same for text: lines removed, doubled, moved, taken from `others`; numbers set to boundaries; `words` put in; in
// one of four also changes of bytes.
std::string mutate_text(std::string input, const std::vector<std::string>& others,
                        const std::vector<std::string>& words, Draws& draws);

// A number at a boundary of some type, as text.
std::string boundary_text(Draws& draws);

// The lines without their ends.
std::vector<std::string> lines_of(const std::string& text);
std::string joined_lines(const std::vector<std::string>& lines);

}  // namespace echelon::fuzz
