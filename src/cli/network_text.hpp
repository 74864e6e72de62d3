// A measured network for the terminal and as a figure.
#pragma once

#include <string>

#include "comm/links/link_faults.hpp"
#include "comm/links/link_matrix.hpp"

namespace echelon::cli {

// Interfaces, matrices of bandwidth and latency between hosts (of up to 16) and inside hosts, and the faults.
std::string network_text(const LinkMatrix& links, const LinkFaults& faults);
// Bandwidth between hosts, or between the ranks of a single host, as SVG.
std::string network_figure(const LinkMatrix& links);

}  // namespace echelon::cli
