// SPDX-License-Identifier: Apache-2.0
// The config as text: the effective TOML, its hash, and the list of keys.
#include <fmt/format.h>

#include "base/checksum.hpp"
#include "base/text.hpp"
#include "config/keys.hpp"
#include "config/parse.hpp"
#include "config/traits/layers.hpp"
#include "config/traits/rules.hpp"

namespace echelon::inline config {
namespace {

// Keys that are younger than runs that keep their hash, besides those of [run] and those that say so themselves.
constexpr Words kYounger = {"data.fraction", "exchange.code_sums", "optimizer.momentum_before_coding"};

std::string echo_layers(const Config& config, bool neutral_too) {
  std::string out;
  for (const LayerConfig& layer : config.model.layers) {
    out += "\n[[model.layers]]\n";
    for (const LayerTraits& type : kLayers) {
      if (type.name != layer.type) continue;
      for (const auto& key : layer_keys()) {
        const bool common = key.name == "type" || key.name == "name" || key.name == "inputs" ||
                            (key.name == "stage" && neutral_too);  // neutral like all keys of [parallel]
        if (!common && !type.takes.contains(key.name)) continue;
        if (!neutral_too && key.younger && key.get(layer) == key.get(LayerConfig())) continue;
        const std::string value = value_toml(key.get(layer));
        if (value != "\"\"" && value != "[]") out += fmt::format("{} = {}\n", key.name, value);
      }
    }
  }
  return out;
}

// Writes all keys, or only those that identify a run.
std::string echo(const Config& config, bool neutral_too) {
  std::string out, section;
  for (const auto& key : config_keys()) {
    if (key.neutral && !neutral_too) continue;
    const bool younger = key.younger || key.section == "run" || kYounger.contains(key.path());
    if (!neutral_too && younger && key.get(config) == key.get(Config())) continue;
    if (key.section != section) {
      if (section == "model") out += echo_layers(config, neutral_too);
      section = key.section;
      out += fmt::format("\n[{}]\n", section);
    }
    out += fmt::format("{} = {}\n", key.name, value_toml(key.get(config)));
  }
  return out;
}

}  // namespace

std::string echo_config(const Config& config) { return echo(config, true); }

std::uint64_t config_hash(const Config& config) {
  std::string text = echo(config, false);
  // The hash includes the length of training only if the learning rate depends on it.
  const ScheduleTraits* schedule = find_traits(kSchedules, config.optimiser.schedule);
  if (schedule && schedule->spans_the_run && config.optimiser.schedule_epochs == 0)
    text += fmt::format("{} {}", config.train.epochs, config.train.steps);
  return checksum64(text);
}

std::string keys_text() {
  std::string out;
  const auto list = [&](const auto& keys, const auto& owner, const std::string& section) {
    Table table({"key", "type", "default", "allowed", "meaning"});
    for (const auto& key : keys) {
      if (key.section != section) continue;
      const auto value = key.get(owner);
      table.row({key.name, type_text(value, key.limits), value_toml(value), limits_text(value, key.limits), key.help});
    }
    out += fmt::format("{}{}",
                       section.empty()             ? ""
                       : section == "model.layers" ? "\n[[model.layers]]\n"
                                                   : "\n[" + section + "]\n",
                       table.text());
  };
  list(config_keys(), Config(), "");
  for (const std::string& section : section_names()) {
    list(config_keys(), Config(), section);
    if (section == "model") list(layer_keys(), LayerConfig(), "model.layers");
  }
  out += "\nLayers and the keys they take besides type, name and inputs (* needed):\n";
  for (const LayerTraits& type : kLayers) {
    const bool alone = type.takes.empty() && type.inputs.empty();
    out += alone ? fmt::format("  {}", type.name) : fmt::format("  {:<11}", type.name);
    for (const std::string_view key : type.takes) out += fmt::format(" {}{}", key, type.needs.contains(key) ? "*" : "");
    if (!type.inputs.empty()) out += fmt::format("{} {}", type.takes.empty() ? "" : ";", type.inputs);
    out += "\n";
  }
  out +=
      "\nAny key can be given by --set section.key=value or by the environment, ECHELON_<SECTION>_<KEY>\n"
      "(ECHELON_BATCH_GLOBAL=128): --set over environment over file over default. An empty value (--set section.key=)\n"
      "puts a key back to its default; keys of the file that an override leaves without a use are left out, with a "
      "note.\n";
  return out;
}

}  // namespace echelon::inline config
