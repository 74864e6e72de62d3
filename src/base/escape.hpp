// SPDX-License-Identifier: Apache-2.0
// Escapes text from outside (names, labels, classes, paths) in the program's output. Each output format has its own
// rules, and its writer escapes; records keep the text unchanged. All functions replace control characters and bytes
// that are not UTF-8 by "?".
#pragma once

#include <cstddef>
#include <string>

namespace echelon::inline base {

// Escapes content and double-quoted attributes of HTML, XML and SVG: & < > " become entities.
std::string escaped_for_markup(const std::string& text);
// Escapes a paragraph, a list item or a table cell of GitHub's Markdown, which then shows the text unchanged; newlines
// become spaces. A single word of letters, digits, "_" and "." in backquotes stays code.
std::string escaped_for_markdown(const std::string& text);
// Escapes output on a terminal: no escape sequence can move the cursor or change colours or titles. Newlines stay.
std::string escaped_for_terminal(const std::string& text);

// Returns the number of bytes (0 to 3) at the end of a text that begin an incomplete UTF-8 character.
std::size_t begun_bytes(const std::string& text);

}  // namespace echelon::inline base
