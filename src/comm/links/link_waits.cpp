// SPDX-License-Identifier: Apache-2.0
#include "comm/links/link_waits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.hpp"

namespace echelon::inline comm {
namespace {

constexpr double kSlow = 0.5, kBusy = 0.1, kElsewhere = 0.2, kOfStep = 0.2, kRest = 0.5, kApart = 1.5, kOfSeconds = 0.7,
                 kOfLinks = 0.6;

// The link from one host to another.
struct HostLink {
  int from = 0, to = 0;
  double seconds = 0, bytes = 0;
  bool slow = false;

  double pace() const { return seconds / bytes; }
  bool touches(int host) const { return from == host || to == host; }
};
using Links = std::vector<HostLink>;
using Chosen = std::function<bool(const HostLink&)>;

Links links_of(const LinkWaits& waits) {
  const std::size_t ranks = waits.hosts.size(), hosts = waits.host_names.size();
  Links all(hosts * hosts);
  for (std::size_t to = 0; to < ranks; ++to) {
    std::vector<double> seconds(hosts);
    for (std::size_t from = 0; from < ranks; ++from) {
      const std::size_t at = to * ranks + from, sender = static_cast<std::size_t>(waits.hosts[from]);
      seconds[sender] += std::min(waits.waited_s[at], waits.transit_s[at]);
      all[static_cast<std::size_t>(waits.hosts[to]) * hosts + sender].bytes += waits.bytes[at];
    }
    for (std::size_t from = 0; from < hosts; ++from) {
      HostLink& link = all[static_cast<std::size_t>(waits.hosts[to]) * hosts + from];
      link.from = static_cast<int>(from), link.to = waits.hosts[to];
      link.seconds = std::max(link.seconds, seconds[from]);
    }
  }
  std::erase_if(all, [](const HostLink& link) { return link.from == link.to || !(link.bytes > 0); });
  double most = 0, slowest = 0;
  for (const HostLink& link : all) most = std::max(most, link.bytes);
  std::erase_if(all, [&](const HostLink& link) { return link.bytes < kBusy * most; });
  for (const HostLink& link : all) slowest = std::max(slowest, link.pace());
  for (HostLink& link : all) link.slow = link.pace() >= kSlow * slowest;
  return all;
}

double most_seconds(const Links& links, const Chosen& chosen) {
  double most = 0;
  for (const HostLink& link : links)
    if (chosen(link)) most = std::max(most, link.seconds);
  return most;
}

bool all_slow(const Links& links, const Chosen& chosen) {
  bool any = false;
  for (const HostLink& link : links) {
    if (!chosen(link)) continue;
    if (!link.slow) return false;
    any = true;
  }
  return any;
}

// Whether few of the slow links' seconds are those of links other than the chosen ones.
bool covers(const Links& links, const Chosen& chosen) {
  double all_s = 0, chosen_s = 0;
  for (const HostLink& link : links) {
    if (!link.slow) continue;
    all_s += link.seconds;
    if (chosen(link)) chosen_s += link.seconds;
  }
  return chosen_s >= (1 - kElsewhere) * all_s;
}

// Returns the host without whose links the longest wait would be shortest, if it would then be at most kRest as long
// and clearly shorter than without any other host's; -1 for none. A host that all links touch cannot be judged.
int host_of_waits(const Links& links, int hosts) {
  const double longest_s = most_seconds(links, [](const HostLink&) { return true; });
  double least_s = kRest * longest_s, second_s = longest_s;
  int least = -1;
  for (int host = 0; host < hosts; ++host) {
    const Chosen others = [host](const HostLink& link) { return !link.touches(host); };
    if (std::none_of(links.begin(), links.end(), others)) continue;
    const double rest_s = most_seconds(links, others);
    if (rest_s <= least_s) {
      if (least >= 0) second_s = least_s;
      least_s = rest_s, least = host;
    } else {
      second_s = std::min(second_s, rest_s);
    }
  }
  return least >= 0 && second_s >= kApart * least_s ? least : -1;
}

// Returns the host whose links hold most of all seconds, clearly more than those of any other host, although they are
// not most of the links; -1 for none.
int host_of_most_seconds(const Links& links, int hosts) {
  const auto seconds_of = [&](const Chosen& chosen) {
    double sum = 0;
    for (const HostLink& link : links) sum += chosen(link) ? link.seconds : 0;
    return sum;
  };
  const double all_s = seconds_of([](const HostLink&) { return true; });
  double most_s = 0, second_s = 0;
  int most = -1;
  for (int host = 0; host < hosts; ++host) {
    const double own_s = seconds_of([host](const HostLink& link) { return link.touches(host); });
    if (own_s > most_s)
      second_s = most_s, most_s = own_s, most = host;
    else
      second_s = std::max(second_s, own_s);
  }
  const auto touched =
      std::count_if(links.begin(), links.end(), [most](const HostLink& link) { return link.touches(most); });
  const bool few_links = static_cast<double>(touched) <= kOfLinks * static_cast<double>(links.size());
  return most >= 0 && few_links && most_s >= kOfSeconds * all_s && most_s >= kApart * second_s ? most : -1;
}

std::string sentence(const Links& links, const std::string& whose, const std::string& which, const Chosen& chosen) {
  return fmt::format(
      "{} the exchange: ranks wait up to {} per step for messages {} and up to {} for those between other hosts", whose,
      seconds_text(most_seconds(links, chosen)), which,
      seconds_text(most_seconds(links, [&](const HostLink& link) { return !chosen(link); })));
}

}  // namespace

std::string limiting_link(const LinkWaits& waits, double step_s) {
  const Links links = links_of(waits);
  const Chosen any = [](const HostLink&) { return true; };
  if (all_slow(links, any) || most_seconds(links, any) < kOfStep * step_s) return {};
  const auto name = [&](int host) { return waits.host_names[static_cast<std::size_t>(host)]; };

  std::set<int> slow_hosts;
  for (int host = 0; host < static_cast<int>(waits.host_names.size()); ++host) {
    const Chosen of = [host](const HostLink& link) { return link.touches(host); };
    if (std::count_if(links.begin(), links.end(), of) > 1 && all_slow(links, of)) slow_hosts.insert(host);
  }
  const Chosen of_slow = [&](const HostLink& link) {
    return slow_hosts.count(link.from) + slow_hosts.count(link.to) > 0;
  };
  if (!slow_hosts.empty() && covers(links, of_slow)) {
    std::vector<std::string> names;
    for (const int host : slow_hosts) names.push_back(name(host));
    const std::string joined = fmt::format("{}", fmt::join(names, ", "));
    return sentence(links,
                    names.size() == 1 ? "the link of host " + joined + " limits" : "the links of " + joined + " limit",
                    "to and from " + joined, of_slow);
  }

  std::set<int> from, to, ends;
  for (const HostLink& link : links)
    if (link.slow) from.insert(link.from), to.insert(link.to), ends.insert({link.from, link.to});
  const Chosen slow = [](const HostLink& link) { return link.slow; };
  if (ends.size() == 2 && from.size() == 1)
    return sentence(links,
                    fmt::format("the link from {0} to {1} (what {0} sends, or what {1} receives) limits",
                                name(*from.begin()), name(*to.begin())),
                    "on it", slow);
  if (ends.size() == 2)
    return sentence(links, fmt::format("the link between {} and {} limits", name(*ends.begin()), name(*ends.rbegin())),
                    "on it", slow);
  if (from.size() == 1 && all_slow(links, [&](const HostLink& link) { return link.from == *from.begin(); }))
    return sentence(links, "what host " + name(*from.begin()) + " sends limits", "from it", slow);
  if (to.size() == 1 && all_slow(links, [&](const HostLink& link) { return link.to == *to.begin(); }))
    return sentence(links, "what host " + name(*to.begin()) + " receives limits", "to it", slow);
  const int hosts = static_cast<int>(waits.host_names.size());
  int host = host_of_waits(links, hosts);
  if (host < 0) host = host_of_most_seconds(links, hosts);
  if (host >= 0)
    return sentence(links, "the link of host " + name(host) + " limits", "to and from " + name(host),
                    [host](const HostLink& link) { return link.touches(host); });
  return {};
}

}  // namespace echelon::inline comm
