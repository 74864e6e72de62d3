// Text from outside (names, labels, classes, paths) inside what the program writes. Each form has rules of its own, and
// whoever writes the form escapes: records keep text as it came. Bytes that are not UTF-8 and control characters become
// "?" in all of them.
#pragma once

#include <cstddef>
#include <string>

namespace echelon::inline base {

// Content and attributes in double quotes of HTML, XML and SVG: & < > " as entities.
std::string escaped_for_markup(const std::string& text);
// A paragraph, a line of a list or a cell of a table of GitHub's Markdown, which shows the text as it is; ends of lines
// become spaces. A single word of letters, digits, "_" and "." in backquotes stays code.
std::string escaped_for_markdown(const std::string& text);
// Whole output for a terminal: no sequence of it moves the cursor, changes colours or titles. Ends of lines stay.
std::string escaped_for_terminal(const std::string& text);

// Bytes at the end of a text that begin a character of UTF-8 whose other bytes may follow; 0 to 3.
std::size_t begun_bytes(const std::string& text);

}  // namespace echelon::inline base
