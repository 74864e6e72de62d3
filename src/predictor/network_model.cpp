#include "predictor/network_model.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "predictor/description.hpp"

namespace echelon::inline predictor {
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

}  // namespace

std::vector<std::string> network_presets() { return names_of(kCards); }

Network NetworkModel::scaled(double rate, double latency) const {
  Network other = network;
  for (Link* link : {&other.inside, &other.between}) link->bytes_per_s *= rate, link->latency_s *= latency;
  other.uplink_bytes_per_s *= rate;
  return other;
}

NetworkModel read_network(const std::string& argument) {
  Description text(argument, "--network", "network");
  const std::string base = text.word("base", "10gbit"), inside = text.word("inside", "memory");
  const CardPreset* card = find_preset(kCards, base);
  if (!card) text.refuse("base", unknown_name("network", base, network_presets()) + "; or a file that ends in .toml");
  const InsidePreset* within = find_preset(kInside, inside);
  if (!within) text.refuse("inside", unknown_name("link inside a host", inside, names_of(kInside)));
  NetworkModel model;
  Network& network = model.network;
  const double gbit = text.number("gbit", card->gbit, 1e-4, 1e5);
  network.between = {.latency_s = 1e-6 * text.number("latency_us", card->latency_us, 0, 1e7),
                     .bytes_per_s = gbit * 1e9 / 8};
  network.inside = {.latency_s = 1e-6 * text.number("inside_latency_us", within->latency_us, 0, 1e7),
                    .bytes_per_s = 1e9 * text.number("inside_gb_per_s", within->gb_per_s, 1e-3, 1e5)};
  network.add_bytes_per_s = 1e9 * text.number("add_gb_per_s", within->add_gb_per_s, 1e-3, 1e6);
  model.ranks_per_host = static_cast<int>(text.number("ranks_per_host", 1, 1, 1024));
  network.hosts_per_switch = static_cast<int>(text.number("hosts_per_switch", 0, 0, 1e6));
  const double over = text.number("over_subscription", 1, 1, 100);
  network.uplink_bytes_per_s = network.between.bytes_per_s * std::max(1, network.hosts_per_switch) / over;
  model.uncertainty = text.number("uncertainty", 0.1, 0, 0.9);
  text.refuse_others();
  model.name = text.has("gbit") ? fmt::format("{} Gbit/s", gbit) : base;
  if (argument.ends_with(".toml")) model.name = argument + ": " + model.name;
  model.name += fmt::format(", {:.3g} us", network.between.latency_s * 1e6);
  if (model.ranks_per_host > 1) model.name += fmt::format(", {} ranks a host by {}", model.ranks_per_host, inside);
  if (network.hosts_per_switch > 0)
    model.name += fmt::format(", {} hosts a switch over-subscribed {}:1", network.hosts_per_switch, over);
  return model;
}

}  // namespace echelon::inline predictor
