#include "run/wire_matrix.hpp"

#include <nlohmann/json.hpp>

namespace echelon::inline run {

std::string WireMatrix::collect(Group& world, std::int64_t steps) const {
  std::vector<double> own = engine_.transport().bytes_to_peers();
  const auto ranks = static_cast<std::size_t>(engine_.transport().size());
  if (ranks < 2 || ranks > kMostRanks || own.size() != ranks) return {};
  for (std::size_t peer = 0; peer < ranks; ++peer) own[peer] -= before_[peer];
  const std::vector<double> all = world.gather(own);
  if (world.rank() != 0) return {};
  nlohmann::ordered_json json = {{"format", "echelon-wire"}, {"version", 1}, {"steps", steps}};
  for (std::size_t from = 0; from < ranks; ++from)
    json["bytes"].push_back(std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(from * ranks),
                                                all.begin() + static_cast<std::ptrdiff_t>((from + 1) * ranks)));
  return json.dump() + "\n";
}

}  // namespace echelon::inline run
