#include "study/placement.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace echelon::inline study {
namespace {

// Ranks by host: that of rank 0 first, then by number of ranks, then in order of first rank.
std::vector<std::vector<int>> ranks_by_host(const std::vector<int>& hosts) {
  std::vector<std::vector<int>> of_host(static_cast<std::size_t>(1 + *std::max_element(hosts.begin(), hosts.end())));
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    of_host[static_cast<std::size_t>(hosts[rank])].push_back(static_cast<int>(rank));
  std::swap(of_host.front(), of_host[static_cast<std::size_t>(hosts.front())]);
  std::stable_sort(of_host.begin() + 1, of_host.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return of_host;
}

}  // namespace

std::vector<int> members_of(const std::vector<int>& hosts, int ranks, CellPlacement placement) {
  ECHELON_CHECK(ranks >= 1 && ranks <= static_cast<int>(hosts.size()), "{} of {} ranks", ranks, hosts.size());
  const auto of_host = ranks_by_host(hosts);
  std::vector<int> members;
  const auto full = [&] { return static_cast<int>(members.size()) == ranks; };
  if (placement == CellPlacement::compact) {
    for (const std::vector<int>& host : of_host)
      for (const int rank : host)
        if (!full()) members.push_back(rank);
    return members;
  }
  for (std::size_t turn = 0; !full(); ++turn)
    for (const std::vector<int>& host : of_host)
      if (turn < host.size() && !full()) members.push_back(host[turn]);
  return members;
}

}  // namespace echelon::inline study
