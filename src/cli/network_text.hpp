// SPDX-License-Identifier: Apache-2.0
// Formats a measured network for the terminal and as a figure.
#pragma once

#include <string>

#include "comm/links/link_faults.hpp"
#include "comm/links/link_matrix.hpp"
#include "comm/transport.hpp"

namespace echelon::cli {

// Shows interfaces, bandwidth and latency matrices between (up to 16) hosts and within hosts, and the faults.
std::string network_text(const LinkMatrix& links, const LinkFaults& faults);
// "8 ranks on 4 hosts, mpi (Open MPI 4.1.4)"
std::string where_text(const LinkMatrix& links);
// Returns a note if ranks wait for cores, because times then depend on the scheduler; else "".
std::string crowd_text(const LinkMatrix& links);
// The interface by which packets leave this host for the next one; "" if there is only one host.
std::string interface_here(const Transport& transport);
// Draws the bandwidth between hosts, or between the ranks of a single host, as SVG.
std::string network_figure(const LinkMatrix& links);

}  // namespace echelon::cli
