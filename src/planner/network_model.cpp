// SPDX-License-Identifier: Apache-2.0
#include "planner/network_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/quantities.hpp"
#include "comm/links/link_matrix.hpp"
#include "comm/network_card.hpp"
#include "planner/description.hpp"

namespace echelon::inline planner {
namespace {

struct CardPreset {
  const char* name;
  double gbit, latency_us;
};
constexpr CardPreset kCards[] = {
    {"100mbit", 0.094, 120},     {"1gbit", 0.94, 50},          {"10gbit", 9.4, 25},
    {"25gbit", 23.5, 15},        {"100gbit", 94, 6},           {"400gbit", 376, 5},
    {"infiniband-edr", 97, 1.5}, {"infiniband-hdr", 194, 1.5}, {"infiniband-ndr", 388, 1.5},
};

struct InsidePreset {
  const char* name;
  double gb_per_s, latency_us, add_gb_per_s;
};
constexpr InsidePreset kInside[] = {{"memory", 5, 2, 10}, {"pcie", 12, 5, 300}, {"nvlink", 200, 3, 500}};

template <class Preset, std::size_t n>
const Preset* find_preset(const Preset (&presets)[n], const std::string& name) {
  for (const Preset& preset : presets)
    if (preset.name == name) return &preset;
  return nullptr;
}

template <class Preset, std::size_t n>
std::vector<std::string> names_of(const Preset (&presets)[n]) {
  std::vector<std::string> names;
  for (const Preset& preset : presets) names.emplace_back(preset.name);
  return names;
}

constexpr const char* kDefault = "10gbit";
constexpr double kLeastUncertainty = 0.05;

// The contents of a file of `echelon bench network`.
struct MeasuredNetwork {
  Network network;
  int ranks_per_host = 1;
  double uncertainty = kLeastUncertainty;  // deviation of the link that is farthest from the median
  std::vector<LoadedShare> loaded = {};
};

MeasuredNetwork measured_network(const std::string& path) {
  const LinkMatrix links = read_link_matrix(path);
  MeasuredNetwork measured{.network = network_of(links)};
  const int ranks = static_cast<int>(links.ranks()), hosts = static_cast<int>(links.host_names.size());
  for (int host = 0; host < hosts; ++host)
    measured.ranks_per_host =
        std::max(measured.ranks_per_host, static_cast<int>(std::count(links.hosts.begin(), links.hosts.end(), host)));
  bool any = false;
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to) {
      const double rate = links.bytes_per_s[links.at(from, to)];
      const bool between = links.hosts[static_cast<std::size_t>(from)] != links.hosts[static_cast<std::size_t>(to)];
      if (!(rate > 0) || between != (hosts > 1)) continue;
      any = true;
      const Link& link = between ? measured.network.between : measured.network.inside;
      measured.uncertainty = std::clamp(std::abs(rate / link.bytes_per_s - 1), measured.uncertainty, 0.9);
    }
  const double alone = measured.network.between.bytes_per_s;
  for (const LoadedLinks& one : links.loaded)
    measured.loaded.push_back(
        {.hosts = one.hosts, .ring = one.ring_bytes_per_s / alone, .shuffle = one.shuffle_bytes_per_s / alone});
  if (!any)
    throw DataError(fmt::format("{}: no link {} was measured", path, hosts > 1 ? "between hosts" : "between ranks"));
  return measured;
}

// The values of a base, which keys override.
struct Base {
  double gbit, latency_us, inside_gb_per_s, inside_latency_us, add_gb_per_s;
  int ranks_per_host = 1;
  double uncertainty = 0.1;
  std::vector<LoadedShare> loaded = {};
};

Base base_of(const MeasuredNetwork& measured) {
  const Network& network = measured.network;
  return {.gbit = network.between.bytes_per_s * 8 / 1e9,
          .latency_us = network.between.latency_s * 1e6,
          .inside_gb_per_s = network.inside.bytes_per_s / 1e9,
          .inside_latency_us = network.inside.latency_s * 1e6,
          .add_gb_per_s = network.add_bytes_per_s / 1e9,
          .ranks_per_host = measured.ranks_per_host,
          .uncertainty = measured.uncertainty,
          .loaded = measured.loaded};
}

}  // namespace

std::string network_of_config(const NetworkConfig& config) {
  if (config.rate.empty()) return kDefault;
  constexpr std::size_t kLong = 1 << 20;                                       // many frames
  const std::vector<double> rates = parse_rates(config.rate, "network.rate");  // all ranks wait for the slowest
  const NetworkShape shape{.bytes_per_s = *std::min_element(rates.begin(), rates.end())};
  return fmt::format("gbit={:.6g},latency_us={},ranks_per_host={},uncertainty={}",
                     kLong / card_s(shape, kLong) * 8 / 1e9, config.delay_us, config.ranks_per_host, kLeastUncertainty);
}

std::vector<std::string> network_presets() { return names_of(kCards); }

double NetworkModel::loaded_share(int hosts, bool ring) const {
  double share = 1;
  for (const LoadedShare& one : loaded)
    if (one.hosts <= hosts) share = ring ? one.ring : one.shuffle;
  return share;
}

Network NetworkModel::scaled(double rate, double latency) const {
  Network other = network;
  for (Link* link : {&other.inside, &other.between}) link->bytes_per_s *= rate, link->latency_s *= latency;
  other.uplink_bytes_per_s *= rate;
  return other;
}

NetworkModel read_network(const std::string& argument) {
  Description text(argument, "--network", "network");
  const std::string base = text.word("base", kDefault), inside = text.word("inside", "memory");
  const bool measured = base.ends_with(".json");
  const CardPreset* card = find_preset(kCards, base);
  if (!card && !measured)
    text.refuse("base", unknown_name("network", base, network_presets()) +
                            "; a file of 'echelon bench network --out' that ends in .json; or a table in a .toml");
  const InsidePreset* within = find_preset(kInside, inside);
  if (!within) text.refuse("inside", unknown_name("link inside a host", inside, names_of(kInside)));
  Base from = measured ? base_of(measured_network(base))
                       : Base{card->gbit, card->latency_us, within->gb_per_s, within->latency_us, within->add_gb_per_s};
  if (measured && text.has("inside"))
    from.inside_gb_per_s = within->gb_per_s, from.inside_latency_us = within->latency_us,
    from.add_gb_per_s = within->add_gb_per_s;
  NetworkModel model;
  Network& network = model.network;
  const double gbit = text.number("gbit", from.gbit, 1e-4, 1e5);
  network.between = {.latency_s = 1e-6 * text.number("latency_us", from.latency_us, 0, 1e7),
                     .bytes_per_s = gbit * 1e9 / 8};
  network.inside = {.latency_s = 1e-6 * text.number("inside_latency_us", from.inside_latency_us, 0, 1e7),
                    .bytes_per_s = 1e9 * text.number("inside_gb_per_s", from.inside_gb_per_s, 1e-3, 1e5)};
  network.add_bytes_per_s = 1e9 * text.number("add_gb_per_s", from.add_gb_per_s, 1e-3, 1e6);
  model.ranks_per_host = static_cast<int>(text.number("ranks_per_host", from.ranks_per_host, 1, 1024));
  network.hosts_per_switch = static_cast<int>(text.number("hosts_per_switch", 0, 0, 1e6));
  const double over = text.number("over_subscription", 1, 1, 100);
  network.uplink_bytes_per_s = network.between.bytes_per_s * std::max(1, network.hosts_per_switch) / over;
  model.uncertainty = text.number("uncertainty", from.uncertainty, 0, 0.9);
  model.loaded = from.loaded;
  text.refuse_others();
  model.name = measured || text.has("gbit") ? fmt::format("{:.4g} Gbit/s", gbit) : base;
  if (measured) model.name = fmt::format("measured: {}: {}", base, model.name);
  if (argument.ends_with(".toml")) model.name = argument + ": " + model.name;
  model.name += fmt::format(", {:.3g} us", network.between.latency_s * 1e6);
  const bool inside_named = !measured || text.has("inside");
  if (model.ranks_per_host > 1)
    model.name += fmt::format(", {} ranks a host{}", model.ranks_per_host, inside_named ? " by " + inside : "");
  if (network.hosts_per_switch > 0)
    model.name += fmt::format(", {} hosts a switch, over-subscribed {}:1", network.hosts_per_switch, over);
  return model;
}

}  // namespace echelon::inline planner
