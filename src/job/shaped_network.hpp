// The network of [network] around the messages of a launch.
#pragma once

#include <memory>
#include <string>

#include "comm/network_shape.hpp"
#include "comm/transport.hpp"
#include "config/schema.hpp"

namespace echelon::inline job {

// ConfigError where network.rate is no rate; `key`: its name in messages.
NetworkShape shape_of(const NetworkConfig& config, const std::string& key = "network.rate");

// The transport, slowed down to the network of the config (comm/shaped.hpp); as it is, where none is given. Collective.
std::unique_ptr<Transport> with_network(std::unique_ptr<Transport> transport, const NetworkConfig& config);

// "1 Gbit/s, 50 us, 2 ranks a host"; "" where messages pass as they come.
std::string shaped_text(const Transport& transport);

}  // namespace echelon::inline job
