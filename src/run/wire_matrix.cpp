// SPDX-License-Identifier: Apache-2.0
#include "run/wire_matrix.hpp"

#include <nlohmann/json.hpp>

namespace echelon::inline run {

namespace {

nlohmann::ordered_json rows_of(const std::vector<double>& all, std::size_t ranks) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(ranks))
    rows.push_back(std::vector<double>(at, at + static_cast<std::ptrdiff_t>(ranks)));
  return rows;
}

}  // namespace

std::string WireMatrix::collect(Group& world, std::int64_t steps, const LinkWaits& waits) const {
  std::vector<double> own = engine_.transport().bytes_to_peers();
  const auto ranks = static_cast<std::size_t>(engine_.transport().size());
  if (ranks < 2 || ranks > kMostRanks || own.size() != ranks) return {};
  for (std::size_t peer = 0; peer < ranks; ++peer) own[peer] -= before_[peer];
  const std::vector<double> all = world.gather(own);
  if (world.rank() != 0) return {};
  nlohmann::ordered_json json = {
      {"format", "echelon-wire"}, {"version", 1}, {"steps", steps}, {"bytes", rows_of(all, ranks)}};
  if (!waits.hosts.empty()) {
    json["waited_s"] = rows_of(waits.waited_s, ranks);
    json["transit_s"] = rows_of(waits.transit_s, ranks);
  }
  return json.dump() + "\n";
}

}  // namespace echelon::inline run
