#include "job/shaped_network.hpp"

#include "base/quantities.hpp"
#include "comm/shaped.hpp"

namespace echelon::inline job {
namespace {

// Of a link that tests/cluster/hosts.sh shapes.
constexpr double kBurstBytes = 256e3;

}  // namespace

NetworkShape shape_of(const NetworkConfig& config, const std::string& key) {
  return {.bytes_per_s = parse_rate(config.rate, key),
          .delay_s = 1e-6 * config.delay_us,
          .burst_bytes = kBurstBytes,
          .ranks_per_host = static_cast<int>(config.ranks_per_host)};
}

std::unique_ptr<Transport> with_network(std::unique_ptr<Transport> transport, const NetworkConfig& config) {
  return config.rate.empty() ? std::move(transport) : make_shaped(std::move(transport), shape_of(config));
}

std::string shaped_text(const Transport& transport) {
  return transport.shape() ? transport.shape()->text() : std::string();
}

}  // namespace echelon::inline job
