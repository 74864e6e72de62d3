// SPDX-License-Identifier: Apache-2.0
#include "comm/links/link_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"

namespace echelon::inline comm {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

ordered_json rows_json(const std::vector<double>& values, std::size_t ranks) {
  ordered_json rows = ordered_json::array();
  for (std::size_t from = 0; from < ranks; ++from) {
    ordered_json row = ordered_json::array();
    for (std::size_t to = 0; to < ranks; ++to) {
      const double value = values[from * ranks + to];
      row.push_back(std::isnan(value) ? ordered_json(nullptr) : ordered_json(value));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<double> values_of(const json& file, const char* name, std::size_t ranks) {
  const json& rows = file.at(name);
  std::vector<double> values;
  for (const json& row : rows)
    for (const json& value : row) {
      values.push_back(value.is_null() ? kNotMeasured : value.get<double>());
      if (values.back() < 0) throw DataError(fmt::format("{} has a number below 0", name));
    }
  const bool square =
      rows.size() == ranks && std::all_of(rows.begin(), rows.end(), [&](const json& r) { return r.size() == ranks; });
  if (!square)
    throw DataError(fmt::format("{} does not have {} rows of {} numbers, one for each rank", name, ranks, ranks));
  return values;
}

double middle(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return values.size() % 2 == 1 ? *half : (*half + *std::max_element(values.begin(), half)) / 2;
}

}  // namespace

LinkMatrix LinkMatrix::of(const std::vector<std::string>& host_names, const std::vector<int>& hosts) {
  LinkMatrix links;
  links.host_names = host_names;
  links.interfaces.resize(host_names.size());
  links.hosts = hosts;
  links.latency_s.assign(hosts.size() * hosts.size(), kNotMeasured);
  links.bytes_per_s = links.latency_s;
  return links;
}

std::vector<int> LinkMatrix::leaders() const {
  std::vector<int> first(host_names.size(), -1);
  for (std::size_t rank = hosts.size(); rank-- > 0;)
    first[static_cast<std::size_t>(hosts[rank])] = static_cast<int>(rank);
  return first;
}

void LinkMatrix::spread_between_hosts() {
  const std::vector<int> first = leaders();
  const auto k = static_cast<int>(ranks());
  const auto leader = [&](int rank) { return first[static_cast<std::size_t>(hosts[static_cast<std::size_t>(rank)])]; };
  for (int from = 0; from < k; ++from)
    for (int to = 0; to < k; ++to) {
      if (leader(from) == leader(to)) continue;
      latency_s[at(from, to)] = latency_s[at(leader(from), leader(to))];
      bytes_per_s[at(from, to)] = bytes_per_s[at(leader(from), leader(to))];
    }
}

Network network_of(const LinkMatrix& links) {
  std::vector<double> latencies[2], rates[2];  // inside, between
  for (int from = 0; from < static_cast<int>(links.ranks()); ++from)
    for (int to = 0; to < static_cast<int>(links.ranks()); ++to) {
      const std::size_t at = links.at(from, to);
      if (!(links.bytes_per_s[at] > 0) || std::isnan(links.latency_s[at])) continue;
      const bool between = links.hosts[static_cast<std::size_t>(from)] != links.hosts[static_cast<std::size_t>(to)];
      latencies[between].push_back(links.latency_s[at]);
      rates[between].push_back(links.bytes_per_s[at]);
    }
  Network network;
  for (const int kind : {0, 1}) {
    const int from = rates[kind].empty() ? 1 - kind : kind;
    if (rates[from].empty()) break;
    Link& link = kind == 0 ? network.inside : network.between;
    link.latency_s = middle(latencies[from]);
    link.bytes_per_s = middle(rates[from]);
  }
  return network;
}

std::string link_matrix_json(const LinkMatrix& links) {
  ordered_json loaded = ordered_json::array();
  for (const LoadedLinks& one : links.loaded)
    loaded.push_back({{"hosts", one.hosts},
                      {"ring_bytes_per_s", one.ring_bytes_per_s},
                      {"shuffle_bytes_per_s", one.shuffle_bytes_per_s}});
  const ordered_json out = {{"format", "echelon-network"},
                            {"version", 1},
                            {"date", links.date},
                            {"transport", links.transport},
                            {"host_names", links.host_names},
                            {"interfaces", links.interfaces},
                            {"hosts", links.hosts},
                            {"latency_s", rows_json(links.latency_s, links.ranks())},
                            {"bytes_per_s", rows_json(links.bytes_per_s, links.ranks())},
                            {"loaded", loaded}};
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

LinkMatrix read_link_matrix(const std::string& path) {
  try {
    const json file = json::parse(read_file_whole(path));
    if (!file.is_object() || file.value("format", "") != "echelon-network" || file.value("version", 0) != 1)
      throw DataError(
          "is not a network file of version 1 (format \"echelon-network\") as 'echelon bench network' writes it");
    LinkMatrix links =
        LinkMatrix::of(file.at("host_names").get<std::vector<std::string>>(), file.at("hosts").get<std::vector<int>>());
    const auto host_count = static_cast<int>(links.host_names.size());
    for (const int host : links.hosts)
      if (host < 0 || host >= host_count) throw DataError(fmt::format("hosts: {} of {} hosts", host, host_count));
    links.date = file.value("date", "");
    links.transport = file.value("transport", "");
    links.interfaces = file.value("interfaces", links.interfaces);
    links.interfaces.resize(links.host_names.size());
    links.latency_s = values_of(file, "latency_s", links.ranks());
    links.bytes_per_s = values_of(file, "bytes_per_s", links.ranks());
    for (const json& one : file.value("loaded", json::array()))
      links.loaded.push_back({.hosts = one.at("hosts").get<int>(),
                              .ring_bytes_per_s = one.at("ring_bytes_per_s").get<double>(),
                              .shuffle_bytes_per_s = one.at("shuffle_bytes_per_s").get<double>()});
    for (const LoadedLinks& one : links.loaded)
      if (one.hosts < 2 || !(one.ring_bytes_per_s > 0) || !(one.shuffle_bytes_per_s > 0))
        throw DataError("loaded: expected at least 2 hosts and rates above 0");
    return links;
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", path, error.what()));
  } catch (const json::exception& error) {
    throw DataError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace echelon::inline comm
