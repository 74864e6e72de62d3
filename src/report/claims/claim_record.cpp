// SPDX-License-Identifier: Apache-2.0
#include "report/claims/claim_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "report/claims/formula.hpp"
#include "report/figures_json.hpp"

namespace echelon::inline report {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "echelon-claim";
constexpr int kVersion = 1;

// Infinite bounds and unknown numbers are left out.
void put(ordered_json& to, const char* name, double value) {
  if (std::isfinite(value)) to[name] = value;
}
void put(ordered_json& to, const char* name, const std::string& value) {
  if (!value.empty()) to[name] = value;
}
template <class Item>
void put(ordered_json& to, const char* name, const std::vector<Item>& value) {
  if (!value.empty()) to[name] = value;
}

ordered_json test_json(const ClaimTest& test) {
  ordered_json out;
  put(out, "says", test.says);
  out["kind"] = kTestKinds[static_cast<std::size_t>(test.kind)];
  put(out, "figure", test.figure);
  put(out, "formula", test.formula);
  put(out, "where", test.where);
  put(out, "of", test.of);
  put(out, "over", test.over);
  put(out, "order", test.order);
  put(out, "axis", test.axis);
  put(out, "direction", test.direction);
  if (test.kind == TestKind::interaction) out["better"] = test.better;
  put(out, "expect", test.expect);
  if (test.within > 0) out["within"] = test.within;
  put(out, "at_least", test.at_least);
  put(out, "at_most", test.at_most);
  return out;
}

ordered_json rule_json(const Claim& claim) {
  ordered_json out = {{"number", claim.number}, {"sentence", claim.sentence}};
  put(out, "source", claim.source);
  put(out, "note", claim.note);
  out["instrument"] = kInstruments[static_cast<std::size_t>(claim.instrument)];
  out["margin"] = claim.margin;
  put(out, "reference", claim.reference);
  for (const auto& [name, text] : claim.let) out["let"][name] = text;
  for (const ClaimTest& test : claim.tests) out["tests"].push_back(test_json(test));
  return out;
}

std::size_t index_of(const std::vector<std::string>& words, const std::string& word) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) throw DataError(fmt::format("unknown word \"{}\"", word));
  return static_cast<std::size_t>(found - words.begin());
}

ClaimTest test_of(const ordered_json& from) {
  ClaimTest test;
  test.says = from.value("says", "");
  test.kind = static_cast<TestKind>(index_of(kTestKinds, from.at("kind")));
  test.figure = from.value("figure", "");
  test.formula = from.value("formula", "");
  test.where = from.value("where", CellSelection());
  test.of = from.value("of", CellSelection());
  test.over = from.value("over", CellSelection());
  test.order = from.value("order", std::vector<CellSelection>());
  test.axis = from.value("axis", "");
  test.direction = from.value("direction", "");
  test.better = from.value("better", test.better);
  test.expect = from.value("expect", test.expect);
  test.within = from.value("within", test.within);
  test.at_least = from.value("at_least", test.at_least);
  test.at_most = from.value("at_most", test.at_most);
  return test;
}

Claim claim_of(const ordered_json& from) {
  Claim claim;
  from.at("number").get_to(claim.number);
  from.at("sentence").get_to(claim.sentence);
  claim.source = from.value("source", "");
  claim.note = from.value("note", "");
  claim.instrument = static_cast<Instrument>(index_of(kInstruments, from.at("instrument")));
  from.at("margin").get_to(claim.margin);
  claim.reference = from.value("reference", CellSelection());
  if (from.contains("let"))
    for (const auto& [name, text] : from.at("let").items()) claim.let.emplace_back(name, text);
  for (const ordered_json& test : from.at("tests")) claim.tests.push_back(test_of(test));
  return claim;
}

void flatten(const std::string& name, const json& value, std::map<std::string, double>& into) {
  if (value.is_number()) {
    into[name] = value.get<double>();
  } else if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) flatten(name + "." + key, inner, into);
  } else if (value.is_array()) {
    double sum = 0, largest = -std::numeric_limits<double>::infinity();
    for (const json& item : value) {
      if (!item.is_number()) return;
      sum += item.get<double>();
      largest = std::max(largest, item.get<double>());
    }
    if (value.empty()) return;
    into[name + ".sum"] = sum;
    into[name + ".largest"] = largest;
  }
}

}  // namespace

std::string rule_text(const Claim& claim) { return rule_json(claim).dump(); }

std::map<std::string, double> flat_figures(const RunFigures& figures) {
  std::map<std::string, double> all;
  const json whole = to_json(figures);
  for (const auto& [name, value] : whole.items()) flatten(name, value, all);
  return all;
}

std::map<std::string, double> claimed_figures(const Claim& claim, const std::map<std::string, double>& all) {
  std::set<std::string> names;
  const auto add = [&](const std::string& text) {
    if (!text.empty())
      for (const std::string& name : names_of_formula(text)) names.insert(name);
  };
  for (const auto& [name, text] : claim.let) add(text);
  for (const ClaimTest& test : claim.tests) add(test.figure), add(test.formula);
  std::map<std::string, double> named;
  for (const auto& [name, value] : all)
    if (names.contains(name)) named[name] = value;
  return named;
}

std::string claim_json(const ClaimRecord& record) {
  ordered_json out = {{"format", kFormat},
                      {"version", kVersion},
                      {"claim", rule_json(record.claim)},
                      {"hash", record.claim.hash},
                      {"registered", {{"hash", record.registered_hash}, {"date", record.registered_date}}},
                      {"study", record.study},
                      {"commit", record.commit},
                      {"date", record.date},
                      {"devices", record.devices},
                      {"machine_s", record.machine_s},
                      {"cells", ordered_json::array()}};
  for (const ClaimCell& cell : record.cells)
    out["cells"].push_back({{"keys", cell.keys},
                            {"sets", cell.sets},
                            {"seed", cell.seed},
                            {"outcome", cell.outcome},
                            {"figures", cell.figures}});
  return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ClaimRecord read_claim_record(const std::string& path) {
  try {
    const ordered_json from = ordered_json::parse(read_file_whole(path));
    if (from.value("format", "") != kFormat || from.value("version", 0) != kVersion)
      throw DataError(fmt::format("{}: is not a record of a claim of version {}", path, kVersion));
    ClaimRecord record;
    record.claim = claim_of(from.at("claim"));
    from.at("hash").get_to(record.claim.hash);
    from.at("registered").at("hash").get_to(record.registered_hash);
    from.at("registered").at("date").get_to(record.registered_date);
    from.at("study").get_to(record.study);
    from.at("commit").get_to(record.commit);
    from.at("date").get_to(record.date);
    from.at("devices").get_to(record.devices);
    from.at("machine_s").get_to(record.machine_s);
    for (const ordered_json& cell : from.at("cells"))
      record.cells.push_back({.keys = cell.at("keys"),
                              .sets = cell.at("sets"),
                              .seed = cell.at("seed"),
                              .outcome = cell.at("outcome"),
                              .figures = cell.at("figures")});
    return record;
  } catch (const ordered_json::exception& error) {
    throw DataError(fmt::format("{}: {}", path, error.what()));
  }
}

std::vector<ClaimRecord> read_claim_records(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  if (error) throw DataError(fmt::format("{}: {}", folder, error.message()));
  if (paths.empty()) throw DataError(fmt::format("{}: holds no record of a claim (*.json)", folder));
  std::sort(paths.begin(), paths.end());
  std::vector<ClaimRecord> records;
  for (const std::string& path : paths) records.push_back(read_claim_record(path));
  const auto by_number = [](const ClaimRecord& a, const ClaimRecord& b) { return a.claim.number < b.claim.number; };
  std::stable_sort(records.begin(), records.end(), by_number);
  for (std::size_t i = 1; i < records.size(); ++i)
    if (records[i].claim.number == records[i - 1].claim.number)
      throw DataError(fmt::format("{}: two records belong to claim {}", folder, records[i].claim.number));
  return records;
}

}  // namespace echelon::inline report
