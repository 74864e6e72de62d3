// The network interface by which this host reaches another one.
#pragma once

#include <string>

namespace echelon::inline comm {

// "eth0 10.0.0.1, 10000 Mbit/s": interface and address of the kernel's route to the host of this name, and the speed
// that the driver reports where it does. The name is resolved as the system does, no packet is sent. "" where that
// fails. MPI may choose another way (InfiniBand, btl_tcp_if_include).
std::string route_to_host(const std::string& name);

}  // namespace echelon::inline comm
