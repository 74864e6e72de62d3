// SPDX-License-Identifier: Apache-2.0
#include "job/shaped_network.hpp"

#include <algorithm>
#include <utility>

#include "base/quantities.hpp"
#include "comm/shaped.hpp"

namespace echelon::inline job {
namespace {

// Burst of a link that tests/cluster/hosts.sh shapes.
constexpr double kBurstBytes = 256e3;

}  // namespace

NetworkShape shape_of(const NetworkConfig& config, const std::string& key) {
  std::vector<double> rates = parse_rates(config.rate, key);
  const double largest = *std::max_element(rates.begin(), rates.end());
  if (rates.size() == 1) rates.clear();
  return {.bytes_per_s = largest,
          .delay_s = 1e-6 * config.delay_us,
          .burst_bytes = kBurstBytes,
          .ranks_per_host = static_cast<int>(config.ranks_per_host),
          .rates = std::move(rates)};
}

std::unique_ptr<Transport> with_network(std::unique_ptr<Transport> transport, const NetworkConfig& config) {
  return config.rate.empty() ? std::move(transport) : make_shaped(std::move(transport), shape_of(config));
}

std::string shaped_text(const Transport& transport) {
  return transport.shape() ? transport.shape()->text() : std::string();
}

}  // namespace echelon::inline job
