// Text inside XML, HTML and SVG.
#pragma once

#include <string>

namespace echelon::inline report {

// For content and for attributes in double quotes: & < > " as entities, control characters as "?".
std::string escaped(const std::string& text);

}  // namespace echelon::inline report
