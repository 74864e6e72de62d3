// SPDX-License-Identifier: Apache-2.0
#include "study/placement.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::inline study {
namespace {

// The ranks of each host: first that of rank 0, then in descending number of ranks, then in order of first rank.
std::vector<std::vector<int>> ranks_by_host(const std::vector<int>& hosts) {
  std::vector<std::vector<int>> of_host(static_cast<std::size_t>(1 + *std::max_element(hosts.begin(), hosts.end())));
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    of_host[static_cast<std::size_t>(hosts[rank])].push_back(static_cast<int>(rank));
  std::swap(of_host.front(), of_host[static_cast<std::size_t>(hosts.front())]);
  std::stable_sort(of_host.begin() + 1, of_host.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return of_host;
}

// Keeps the first `over` hosts, and on each its share of the ranks.
void cut_to(std::vector<std::vector<int>>& of_host, int ranks, int over) {
  if (over > ranks || over > static_cast<int>(of_host.size()))
    throw ConfigError(fmt::format("study.hosts = {}: {} cannot be placed on {}; this launch has {}", over,
                                  counted(ranks, "rank"), counted(over, "host"), counted(std::ssize(of_host), "host")));
  of_host.resize(static_cast<std::size_t>(over));
  for (int host = 0; host < over; ++host) {
    std::vector<int>& own = of_host[static_cast<std::size_t>(host)];
    const auto share = static_cast<std::size_t>(ranks / over + (host < ranks % over ? 1 : 0));
    if (own.size() < share)
      throw ConfigError(fmt::format("study.hosts = {}: {} on each of {} are needed, but one host of this launch has {}",
                                    over, counted(static_cast<std::int64_t>(share), "rank"), over, own.size()));
    own.resize(share);
  }
}

}  // namespace

std::vector<int> members_of(const std::vector<int>& hosts, int ranks, CellPlacement placement, int over) {
  ECHELON_CHECK(ranks >= 1 && ranks <= static_cast<int>(hosts.size()), "{} of {} ranks", ranks, hosts.size());
  auto of_host = ranks_by_host(hosts);
  if (over > 0) cut_to(of_host, ranks, over);
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
