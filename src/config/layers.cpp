// SPDX-License-Identifier: Apache-2.0
// [[model.layers]]: checks which keys a type takes and which it needs.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "config/keys.hpp"
#include "config/traits/layers.hpp"

namespace echelon::inline config {
namespace {

[[noreturn]] void refuse(const Origin& origin, int line, int column, const std::string& why) {
  throw ConfigError(fmt::format("{}: {}", origin.at(line, column), why));
}

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

const Key<LayerConfig>* find_key(const std::string& name) {
  for (const auto& key : layer_keys())
    if (key.name == name) return &key;
  return nullptr;
}

std::vector<std::string> keys_of(const LayerTraits& type) {
  std::vector<std::string> keys = {"type", "name", "inputs", "stage"};
  keys.insert(keys.end(), type.takes.begin(), type.takes.end());
  return keys;
}

const LayerTraits& type_of(const TomlNode& table, const Origin& origin) {
  for (const TomlEntry& entry : table.entries) {
    if (entry.key != "type") continue;
    const Key<LayerConfig>& key = *find_key("type");
    const auto value = read_value(entry.node, std::string(), key.limits, "layer type", origin);
    if (const LayerTraits* type = find_traits(kLayers, std::get<std::string>(value))) return *type;
  }
  refuse(origin, table.line, table.column,
         fmt::format("a layer needs its type, e.g. type = \"conv\"; known: {}", joined(names_in(kLayers))));
}

void refuse_key(const TomlEntry& entry, const LayerTraits& type, const Origin& origin) {
  const auto known = keys_of(type);
  if (!find_key(entry.key))
    refuse(origin, entry.line, entry.column,
           unknown_name(fmt::format("key of a {} layer:", type.name), entry.key, known));
  const std::vector<std::string> users =
      names_where(kLayers, [&](const LayerTraits& other) { return other.takes.contains(entry.key); });
  refuse(origin, entry.line, entry.column,
         fmt::format("a {} layer does not use '{}' (that is for {}); it takes: {}", type.name, entry.key, joined(users),
                     joined(known)));
}

// Checks that channels divide into equal groups; names the nearest numbers that do.
void check_groups(const LayerConfig& layer, const Origin& origin, int line, int column) {
  if (layer.groups <= 1 || layer.channels % layer.groups == 0) return;
  const std::int64_t below = layer.channels / layer.groups * layer.groups;
  refuse(origin, line, column,
         fmt::format("channels = {} are not divisible by groups = {}; nearest valid channels: {}{}", layer.channels,
                     layer.groups, below > 0 ? fmt::format("{} or ", below) : "", below + layer.groups));
}

LayerConfig read_layer(const TomlNode& table, const Origin& origin) {
  const LayerTraits& type = type_of(table, origin);
  const auto known = keys_of(type);
  LayerConfig layer;
  layer.where = origin.has_lines ? fmt::format("{}:{}", origin.name, table.line) : origin.name;
  for (const TomlEntry& entry : table.entries) {
    if (!contains(known, entry.key)) refuse_key(entry, type, origin);
    const Key<LayerConfig>& key = *find_key(entry.key);
    key.set(layer, read_value(entry.node, key.get(layer), key.limits, entry.key, origin));
  }
  for (const std::string_view needed : type.needs) {
    const auto has = [&](const TomlEntry& entry) { return entry.key == needed; };
    if (std::none_of(table.entries.begin(), table.entries.end(), has))
      refuse(origin, table.line, table.column,
             fmt::format("a {} layer needs '{}', {}; it takes: {}", type.name, needed,
                         find_key(std::string(needed))->help, joined(known)));
  }
  check_groups(layer, origin, table.line, table.column);
  if ((layer.type == "add" || layer.type == "concat") && layer.inputs.size() < 2)
    refuse(origin, table.line, table.column,
           fmt::format("{} {} layer takes at least 2 inputs, not {}; e.g. inputs = [\"conv1\", \"conv2\"]",
                       layer.type == "add" ? "an" : "a", layer.type, layer.inputs.size()));
  return layer;
}

}  // namespace

std::vector<LayerConfig> read_layers(const TomlNode& node, const Origin& origin) {
  if (node.kind != TomlKind::array)
    refuse(origin, node.line, node.column, "layers are a list of tables: write [[model.layers]] before each");
  std::vector<LayerConfig> layers;
  std::map<std::string, std::string> named;  // name -> place
  for (const TomlNode& item : node.items) {
    if (item.kind != TomlKind::table)
      refuse(origin, item.line, item.column,
             fmt::format("a layer is a table ([[model.layers]]), not {}", toml_kind_text(item.kind)));
    LayerConfig layer = read_layer(item, origin);
    if (!layer.name.empty() && !named.emplace(layer.name, layer.where).second)
      refuse(origin, item.line, item.column,
             fmt::format("layer name '{}' is taken already ({})", layer.name, named[layer.name]));
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace echelon::inline config
