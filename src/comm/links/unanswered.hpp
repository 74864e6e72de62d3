// SPDX-License-Identifier: Apache-2.0
// Lists hosts that do not answer this process, from the kernel's table of TCP connections. They are the other ends of a
// blocked link, about which a library that waits for it says nothing.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline comm {

// Returns "h3 (10.78.0.3)", or the address if it has no name; sorted. Includes the peers of connections of this process
// whose connection request is unanswered, or that have not answered data sent more than twice. IPv4 only; empty if the
// kernel shows no table. Resolves names by the system, which may take seconds.
std::vector<std::string> unanswered_hosts();

}  // namespace echelon::inline comm
