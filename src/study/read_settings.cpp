// SPDX-License-Identifier: Apache-2.0
// [study.axes], [study.ranges], [[study.variants]] and [[study.environments]].
#include <filesystem>
#include <variant>

#include "study/section_reader.hpp"

namespace echelon::inline study {
namespace {

namespace fs = std::filesystem;

// A key of [study] that an axis, a variant or an environment may set for its cells. No `words`: whole numbers.
struct CellKey {
  const char* name;
  std::vector<std::string> words;
};
const std::vector<CellKey>& cell_keys() {
  static const std::vector<CellKey> keys = {{"study.placement", {"compact", "spread"}},
                                            {"study.hosts", {}},
                                            {"study.search", {"grid", "random", "bayesian"}}};
  return keys;
}

bool is_option(const std::string& key) { return key.starts_with("--"); }

// The key of the experiment that an axis or a range varies.
const Key<Config>& key_of(const SectionReader& in, const TomlEntry& entry, std::string_view section) {
  const auto& keys = config_keys();
  const auto key = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.path() == entry.key; });
  if (key == keys.end()) {
    std::vector<std::string> known;
    for (const auto& k : keys) known.push_back(k.path());
    for (const CellKey& k : cell_keys()) known.emplace_back(k.name);
    const std::string near = nearest_name(entry.key, known);
    const bool in_quotes = entry.key.find('.') != std::string::npos;  // otherwise TOML reads a table
    in.refuse(entry, fmt::format("unknown key '{}' in [study.{}]{}{}", entry.key, section,
                                 near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near),
                                 in_quotes ? "; known: `echelon check --keys`"
                                           : "; write the whole name in quotes, \"batch.global\""));
  }
  if (entry.key == "name" || entry.key == "run.results")
    in.refuse(entry, fmt::format("'{}' is set for each cell by the study", entry.key));
  return *key;
}

// The value as written after "=" in a set of a cell.
std::string plain(const SectionReader& in, const TomlEntry& entry, const TomlNode& item) {
  switch (item.kind) {
    case TomlKind::text: return item.text;
    case TomlKind::integer: return fmt::format("{}", item.integer);
    case TomlKind::real: return fmt::format("{}", item.real);
    case TomlKind::boolean: return item.boolean ? "true" : "false";
    default: in.refuse(item.line, item.column, fmt::format("{} needs texts or numbers", entry.key));
  }
}

StudyAxis axis(const SectionReader& in, const TomlEntry& entry) {
  const auto special =
      std::find_if(cell_keys().begin(), cell_keys().end(), [&](const CellKey& k) { return k.name == entry.key; });
  const bool of_cell = special != cell_keys().end(), option = is_option(entry.key);
  const Key<Config>* key = of_cell || option ? nullptr : &key_of(in, entry, "axes");
  if (entry.node.kind != TomlKind::array || entry.node.items.empty())
    in.refuse(entry, fmt::format("study.axes: {} needs a list of values in brackets", entry.key));
  StudyAxis made{.key = entry.key, .values = {}};
  for (const TomlNode& item : entry.node.items) {
    if (option)
      made.values.push_back(plain(in, entry, item));
    else if (key != nullptr)
      made.values.push_back(value_toml(read_value(item, key->get(Config()), key->limits, entry.key, in.origin())));
    else if (special->words.empty())
      made.values.push_back(
          std::to_string(std::get<std::int64_t>(read_value(item, std::int64_t{}, {1, 65536}, entry.key, in.origin()))));
    else
      made.values.push_back(std::get<std::string>(
          read_value(item, std::string(), {.low = 1, .high = 0, .words = special->words}, entry.key, in.origin())));
  }
  return made;
}

SearchRange range(const SectionReader& in, const TomlEntry& entry) {
  const Key<Config>& key = key_of(in, entry, "ranges");
  const KeyValue like = key.get(Config());
  SearchRange range{.key = entry.key, .whole = std::holds_alternative<std::int64_t>(like)};
  if (!range.whole && !std::holds_alternative<double>(like))
    in.refuse(entry, fmt::format("{} is not a number: list its values in [study.axes] instead", entry.key));
  bool has_low = false, has_high = false;
  const auto number = [&](const TomlEntry& end) {
    const KeyValue read = read_value(end.node, like, key.limits, entry.key, in.origin());
    return range.whole ? static_cast<double>(std::get<std::int64_t>(read)) : std::get<double>(read);
  };
  for (const TomlEntry& end : entry.node.entries) {
    if (end.key == "low")
      range.low = number(end), has_low = true;
    else if (end.key == "high")
      range.high = number(end), has_high = true;
    else if (end.key == "log")
      range.logarithmic = std::get<bool>(in.value(end, false, {}));
    else
      in.refuse(end, unknown_name("key of a range", end.key, std::vector<std::string>{"low", "high", "log"}));
  }
  if (!has_low || !has_high || range.low >= range.high)
    in.refuse(entry, fmt::format("{} needs low < high, e.g. {{ low = 1e-4, high = 1.0, log = true }}", entry.key));
  if (range.logarithmic && range.low <= 0)
    in.refuse(entry, fmt::format("{}: a logarithmic range must begin above 0", entry.key));
  return range;
}

// A value as TOML on one line.
std::string toml_text(const TomlNode& node) {
  switch (node.kind) {
    case TomlKind::boolean: return node.boolean ? "true" : "false";
    case TomlKind::integer: return fmt::format("{}", node.integer);
    case TomlKind::real: return value_toml(node.real);
    case TomlKind::date:
    case TomlKind::text: return value_toml(node.text);
    case TomlKind::array: {
      std::string text;
      for (const TomlNode& item : node.items) text += (text.empty() ? "" : ", ") + toml_text(item);
      return "[" + text + "]";
    }
    case TomlKind::table: break;
  }
  std::string text;
  for (const TomlEntry& entry : node.entries)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", value_toml(entry.key), toml_text(entry.node));
  return "{" + text + "}";
}

// Refuses sets that the cells of this entry could not take, with their place in the file.
void check_sets(const SectionReader& in, const TomlEntry& entry, const std::vector<std::string>& sets) {
  StudyPlan none;
  for (const std::string& set : sets) {
    if (set.find('=') == std::string::npos)
      in.refuse(entry, fmt::format("\"{}\": write section.key=value, e.g. \"batch.global=128\"", set));
    if (set.starts_with("study.")) try {
        (void)make_cell(none, {.text = "", .sets = {set}}, 1, 1);
      } catch (const ConfigError& error) {
        in.refuse(entry, error.what());
      }
    if (set.starts_with("study.search="))
      in.refuse(entry, "a proposer is chosen by an axis: [study.axes] \"study.search\" = [\"random\", \"bayesian\"]");
  }
}

StudyVariant variant(const SectionReader& in, const TomlNode& node, const StudyPlan& study) {
  StudyVariant made;
  made.where = in.origin().at(node.line, node.column);
  std::vector<std::string> layers;
  for (const TomlEntry& entry : node.entries) {
    if (entry.key == "name") {
      made.name = in.text(entry);
    } else if (entry.key == "set") {
      made.sets = in.texts(entry);
      check_sets(in, entry, made.sets);
    } else if (entry.key == "layers") {
      (void)read_layers(entry.node, in.origin());
      layers = {"model.zoo=", "model.layers=" + toml_text(entry.node)};
    } else if (entry.key == "file") {
      made.file = (fs::path(study.file).parent_path() / in.text(entry)).lexically_normal().string();
      if (!fs::exists(made.file)) in.refuse(entry, fmt::format("file: there is no {}", made.file));
    } else {
      in.refuse(entry, unknown_name("key in [[study.variants]]", entry.key,
                                    std::vector<std::string>{"name", "set", "layers", "file"}));
    }
  }
  if (made.name.empty()) in.refuse(node.line, node.column, "a variant needs a name");
  made.sets.insert(made.sets.begin(), layers.begin(), layers.end());
  return made;
}

StudyEnvironment environment(const SectionReader& in, const TomlNode& node) {
  StudyEnvironment made;
  made.where = in.origin().at(node.line, node.column);
  for (const TomlEntry& entry : node.entries) {
    if (entry.key == "name") {
      made.name = in.text(entry);
    } else if (entry.key == "set") {
      made.sets = in.texts(entry);
      check_sets(in, entry, made.sets);
    } else {
      in.refuse(entry,
                unknown_name("key in [[study.environments]]", entry.key, std::vector<std::string>{"name", "set"}));
    }
  }
  if (made.name.empty()) in.refuse(node.line, node.column, "an environment needs a name");
  return made;
}

// Reads the tables of [[study.<section>]], whose names must differ.
template <class Made, class Read>
void read_named(const SectionReader& in, const TomlEntry& section, std::vector<Made>& all, const Read& read) {
  const std::string how = fmt::format("write [[study.{0}]] once for {1}", section.key,
                                      section.key == "variants" ? "each variant" : "each environment");
  if (section.node.kind != TomlKind::array) in.refuse(section, how);
  for (const TomlNode& item : section.node.items) {
    if (item.kind != TomlKind::table) in.refuse(item.line, item.column, how);
    all.push_back(read(item));
    const auto same = [&](const Made& made) { return made.name == all.back().name; };
    if (std::count_if(all.begin(), all.end(), same) > 1)
      in.refuse(item.line, item.column, fmt::format("two {} are named \"{}\"", section.key, all.back().name));
  }
}

}  // namespace

void read_axes(const SectionReader& in, const TomlEntry& section, StudyPlan& study) {
  for (const TomlEntry& entry : in.entries_of(section, "[..]")) study.axes.push_back(axis(in, entry));
}

void read_ranges(const SectionReader& in, const TomlEntry& section, StudyPlan& study) {
  for (const TomlEntry& entry : in.entries_of(section, "{ low = .., high = .. }"))
    study.ranges.push_back(range(in, entry));
}

void read_variants(const SectionReader& in, const TomlEntry& section, StudyPlan& study) {
  read_named(in, section, study.variants, [&](const TomlNode& item) { return variant(in, item, study); });
}

void read_environments(const SectionReader& in, const TomlEntry& section, StudyPlan& study) {
  read_named(in, section, study.environments, [&](const TomlNode& item) { return environment(in, item); });
}

}  // namespace echelon::inline study
