// SPDX-License-Identifier: Apache-2.0
// Finds the network interface by which this host reaches another one.
#pragma once

#include <string>

namespace echelon::inline comm {

// Returns "eth0 10.0.0.1, 10000 Mbit/s": interface and address of the kernel's route to the host of this name, and the
// speed if the driver reports one. The name is resolved by the system; no packet is sent. Returns "" on failure. MPI
// may choose another route (InfiniBand, a choice of interfaces).
std::string route_to_host(const std::string& name);

}  // namespace echelon::inline comm
