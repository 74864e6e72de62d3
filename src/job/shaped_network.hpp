// SPDX-License-Identifier: Apache-2.0
// Applies the network of [network] to the messages of a launch.
#pragma once

#include <memory>
#include <string>

#include "comm/network_shape.hpp"
#include "comm/transport.hpp"
#include "config/schema.hpp"

namespace echelon::inline job {

// Throws ConfigError if network.rate is not a rate; `key`: its name in messages.
NetworkShape shape_of(const NetworkConfig& config, const std::string& key = "network.rate");

// Slows the transport down to the config's network (comm/shaped.hpp); unchanged if none is given. Collective.
std::unique_ptr<Transport> with_network(std::unique_ptr<Transport> transport, const NetworkConfig& config);

// "1 Gbit/s, 50 us, 2 ranks a host"; "" if messages are not delayed.
std::string shaped_text(const Transport& transport);

}  // namespace echelon::inline job
