// A measured network for the terminal and as a figure.
#pragma once

#include <string>

#include "comm/links/link_faults.hpp"
#include "comm/links/link_matrix.hpp"
#include "comm/transport.hpp"

namespace echelon::cli {

// Interfaces, matrices of bandwidth and latency between hosts (of up to 16) and inside hosts, and the faults.
std::string network_text(const LinkMatrix& links, const LinkFaults& faults);
// "8 ranks on 4 hosts, mpi (Open MPI 4.1.4)"
std::string where_text(const LinkMatrix& links);
// A note where ranks wait for cores, so that times are those of the scheduler; else "".
std::string crowd_text(const LinkMatrix& links);
// By which interface packets of this host leave to the next one; "" where there is one host.
std::string interface_here(const Transport& transport);
// Bandwidth between hosts, or between the ranks of a single host, as SVG.
std::string network_figure(const LinkMatrix& links);

}  // namespace echelon::cli
