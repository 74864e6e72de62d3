// SPDX-License-Identifier: Apache-2.0
#include "cli/network_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/cores.hpp"
#include "base/text.hpp"
#include "comm/links/route.hpp"
#include "job/launch.hpp"
#include "report/writers/heat_map.hpp"

namespace echelon::cli {
namespace {

constexpr std::size_t kMostColumns = 16;

// A subset of the ranks, with the names of rows and columns.
struct Part {
  std::vector<int> ranks;
  std::vector<std::string> names;
};

Part hosts_of(const LinkMatrix& links) { return {links.leaders(), links.host_names}; }

Part ranks_of(const LinkMatrix& links, int host) {
  Part part;
  for (std::size_t rank = 0; rank < links.ranks(); ++rank)
    if (links.hosts[rank] == host) {
      part.ranks.push_back(static_cast<int>(rank));
      part.names.push_back(fmt::format("rank {}", rank));
    }
  return part;
}

std::string rate_cell(const LinkMatrix& links, int from, int to) {
  const double rate = links.bytes_per_s[links.at(from, to)];
  return std::isnan(rate) ? "" : rate == 0 ? "blocked" : bytes_text(rate) + "/s";
}

std::string latency_cell(const LinkMatrix& links, int from, int to) {
  const double latency = links.latency_s[links.at(from, to)];
  return std::isnan(latency) ? "" : seconds_text(latency);
}

using Cell = std::string (*)(const LinkMatrix& links, int from, int to);

std::string matrix_text(const LinkMatrix& links, const Part& part, const char* heading, Cell cell) {
  std::vector<std::string> header = {heading};
  header.insert(header.end(), part.names.begin(), part.names.end());
  Table table(header);
  for (std::size_t row = 0; row < part.ranks.size(); ++row) {
    std::vector<std::string> cells = {part.names[row]};
    for (const int to : part.ranks) cells.push_back(cell(links, part.ranks[row], to));
    table.row(std::move(cells));
  }
  return table.text() + "\n";
}

// Minimum, median and maximum, for a matrix that would be too wide.
std::string range_text(const LinkMatrix& links, const Part& part) {
  std::vector<double> rates, latencies;
  for (const int from : part.ranks)
    for (const int to : part.ranks) {
      if (links.bytes_per_s[links.at(from, to)] > 0) rates.push_back(links.bytes_per_s[links.at(from, to)]);
      if (links.latency_s[links.at(from, to)] > 0) latencies.push_back(links.latency_s[links.at(from, to)]);
    }
  if (rates.empty() || latencies.empty()) return "no link answered\n";
  const auto line = [](std::vector<double>& values, const auto& text) {
    std::sort(values.begin(), values.end());
    return fmt::format("{}, median {}, to {}", text(values.front()), text(values[values.size() / 2]),
                       text(values.back()));
  };
  return fmt::format("bandwidth from {}\nlatency from {}\n", line(rates, [](double v) { return bytes_text(v) + "/s"; }),
                     line(latencies, &seconds_text));
}

std::string part_text(const LinkMatrix& links, const Part& part, const std::string& heading) {
  const std::string head = heading + "\n\n";
  if (part.ranks.size() > kMostColumns) return head + range_text(links, part) + "\n";
  return head + matrix_text(links, part, "bandwidth to", &rate_cell) +
         matrix_text(links, part, "latency to", &latency_cell);
}

std::string loaded_text(const std::vector<LoadedLinks>& loaded) {
  Table table({"hosts", "ring", "shuffle"});
  for (const LoadedLinks& one : loaded)
    table.row({std::to_string(one.hosts), bytes_text(one.ring_bytes_per_s) + "/s",
               bytes_text(one.shuffle_bytes_per_s) + "/s"});
  return "bandwidth of a host, each way, while all hosts send: each to the next one (ring), or to all (shuffle)\n\n" +
         table.text() + "\n";
}

}  // namespace

std::string interface_here(const Transport& transport) {
  const std::size_t hosts = transport.host_names().size();
  if (hosts == 1 || transport.shape()) return {};
  const auto here = static_cast<std::size_t>(transport.hosts()[static_cast<std::size_t>(transport.rank())]);
  return route_to_host(transport.host_names()[(here + 1) % hosts]);
}

std::string where_text(const LinkMatrix& links) {
  return fmt::format("{} on {}, {}", counted(std::ssize(links.hosts), "rank"),
                     counted(std::ssize(links.host_names), "host"), links.transport);
}

std::string crowd_text(const LinkMatrix& links) {
  const auto here = std::count(links.hosts.begin(), links.hosts.end(), 0);
  if (here <= usable_cores()) return {};
  return fmt::format("note: {} has {} for {}: the scheduler dominates their times; start fewer\n",
                     links.host_names.front(), counted(usable_cores(), "core"), counted(here, "rank"));
}

std::string network_text(const LinkMatrix& links, const LinkFaults& faults) {
  std::string out;
  for (std::size_t host = 0; host < links.host_names.size(); ++host)
    if (!links.interfaces[host].empty())
      out += fmt::format("{}: packets to other hosts leave by {}\n", links.host_names[host], links.interfaces[host]);
  if (!out.empty()) out += "\n";
  if (links.host_names.size() > 1)
    out += part_text(links, hosts_of(links), fmt::format("between {} hosts", links.host_names.size()));
  if (!links.loaded.empty()) out += loaded_text(links.loaded);
  for (std::size_t host = 0; host < links.host_names.size(); ++host)
    if (const Part part = ranks_of(links, static_cast<int>(host)); part.ranks.size() > 1)
      out += part_text(links, part, fmt::format("inside {}, {} ranks", links.host_names[host], part.ranks.size()));
  for (const std::string& fault : faults.blocked) out += fmt::format("BLOCKED: {}\n", fault);
  for (const std::string& fault : faults.slow) out += fmt::format("slow: {}\n", fault);
  if (faults.blocked.empty() && faults.slow.empty()) out += "no slow or blocked links\n";
  return out;
}

std::string network_figure(const LinkMatrix& links) {
  const bool several = links.host_names.size() > 1;
  const Part part = several ? hosts_of(links) : ranks_of(links, 0);
  HeatMap map{several ? "Bandwidth between hosts" : "Bandwidth inside " + links.host_names.front(),
              "from",
              "to",
              part.names,
              {},
              {}};
  for (const int from : part.ranks)
    for (const int to : part.ranks) {
      map.values.push_back(links.bytes_per_s[links.at(from, to)]);
      map.texts.push_back(rate_cell(links, from, to));
    }
  return heat_map_svg(map);
}

}  // namespace echelon::cli
