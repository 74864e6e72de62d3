// Hosts that do not answer what this process sends them, by the kernel's table of TCP connections: the other ends of a
// blocked link, where a library that waits for it says nothing.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline comm {

// "h3 (10.78.0.3)", or the address alone where it has no name; sorted. Of connections of this process that are asked
// for and not answered, or on which data was sent more than twice without an answer. IPv4; empty where the kernel shows
// no table. Resolves names as the system does, which may take seconds.
std::vector<std::string> unanswered_hosts();

}  // namespace echelon::inline comm
