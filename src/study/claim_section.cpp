// SPDX-License-Identifier: Apache-2.0
#include "study/claim_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "config/keys.hpp"
#include "report/claims/claim_record.hpp"
#include "report/claims/formula.hpp"

namespace echelon::inline study {
namespace {

using Texts = std::vector<std::string>;

class Reader {
 public:
  explicit Reader(const std::string& path) : origin_{path, true} {}

  Claim claim(const TomlNode& node) {
    Claim made;
    bool has_number = false;
    const Fields fields = {
        {"number", [&](const TomlEntry& e) { made.number = whole(e), has_number = true; }},
        {"sentence", [&](const TomlEntry& e) { made.sentence = text(e); }},
        {"source", [&](const TomlEntry& e) { made.source = text(e); }},
        {"note", [&](const TomlEntry& e) { made.note = text(e); }},
        {"instrument", [&](const TomlEntry& e) { made.instrument = static_cast<Instrument>(word(e, kInstruments)); }},
        {"margin",
         [&](const TomlEntry& e) {
           made.margin = real(e, {0, 1e6});
         }},
        {"reference", [&](const TomlEntry& e) { made.reference = selection(e); }},
        {"let", [&](const TomlEntry& e) { made.let = let(e); }},
        {"tests", [&](const TomlEntry& e) { made.tests = tests(e); }}};
    read(node, "[claim]", fields);
    if (!has_number || made.sentence.empty() || made.tests.empty())
      refuse(node.line, node.column, "[claim] needs a number, the sentence of its source and [[claim.tests]]");
    return made;
  }

 private:
  using Fields = std::vector<std::pair<std::string, std::function<void(const TomlEntry&)>>>;

  [[noreturn]] void refuse(int line, int column, const std::string& why) const {
    throw ConfigError(fmt::format("{}: {}", origin_.at(line, column), why));
  }

  void read(const TomlNode& node, std::string_view where, const Fields& fields) const {
    for (const TomlEntry& entry : node.entries) {
      const auto field =
          std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.first == entry.key; });
      if (field == fields.end()) {
        Texts known;
        for (const auto& f : fields) known.push_back(f.first);
        refuse(entry.line, entry.column, unknown_name(fmt::format("key in {}", where), entry.key, known));
      }
      field->second(entry);
    }
  }

  KeyValue value(const TomlEntry& entry, const KeyValue& like, const KeyLimits& limits) const {
    return read_value(entry.node, like, limits, "claim." + entry.key, origin_);
  }
  std::string text(const TomlEntry& e) const { return std::get<std::string>(value(e, std::string(), {1, 0})); }
  int whole(const TomlEntry& e) const {
    return static_cast<int>(std::get<std::int64_t>(value(e, std::int64_t{}, {1, 9999})));
  }
  double real(const TomlEntry& e, const KeyLimits& limits) const { return std::get<double>(value(e, 0.0, limits)); }
  Texts texts(const TomlEntry& e) const { return std::get<Texts>(value(e, Texts(), {1, 0})); }
  std::size_t word(const TomlEntry& e, const Texts& words) const {
    const auto chosen = std::get<std::string>(value(e, std::string(), {.low = 1, .high = 0, .words = words}));
    return static_cast<std::size_t>(std::find(words.begin(), words.end(), chosen) - words.begin());
  }
  std::string one_of(const TomlEntry& e, const Texts& words) const { return words[word(e, words)]; }

  std::string formula(const TomlEntry& e) const {
    const std::string written = text(e);
    try {
      check_formula(written);
    } catch (const ConfigError& error) {
      refuse(e.node.line, e.node.column, fmt::format("claim.{}: {}", e.key, error.what()));
    }
    return written;
  }

  CellSelection selection(const TomlEntry& e) const {
    CellSelection made = texts(e);
    for (const std::string& part : made)
      if (part.find('=') == std::string::npos || part.front() == '=')
        refuse(e.node.line, e.node.column,
               fmt::format("claim.{}: \"{}\" selects no cells; e.g. \"exchange.algorithm=ring\"", e.key, part));
    return made;
  }

  std::vector<CellSelection> selections(const TomlEntry& e) const {
    if (e.node.kind != TomlKind::array)
      refuse(e.node.line, e.node.column, fmt::format("claim.{} is a list of selections, [[..], [..]]", e.key));
    std::vector<CellSelection> made;
    for (const TomlNode& item : e.node.items) made.push_back(selection({e.key, item.line, item.column, item}));
    return made;
  }

  std::vector<std::pair<std::string, std::string>> let(const TomlEntry& e) const {
    if (e.node.kind != TomlKind::table)
      refuse(e.line, e.column, "claim.let gives names to formulas: let = { G = \"4 * parameters\" }");
    std::vector<std::pair<std::string, std::string>> made;
    for (const TomlEntry& entry : e.node.entries) made.emplace_back(entry.key, formula(entry));
    return made;
  }

  std::vector<ClaimTest> tests(const TomlEntry& e) const {
    if (e.node.kind != TomlKind::array) refuse(e.line, e.column, "write [[claim.tests]] once for each test");
    std::vector<ClaimTest> made;
    for (const TomlNode& item : e.node.items) made.push_back(test(item));
    return made;
  }

  ClaimTest test(const TomlNode& node) const {
    ClaimTest made;
    const KeyLimits any = {1, 0};
    const Fields fields = {
        {"says", [&](const TomlEntry& e) { made.says = text(e); }},
        {"kind", [&](const TomlEntry& e) { made.kind = static_cast<TestKind>(word(e, kTestKinds)); }},
        {"figure", [&](const TomlEntry& e) { made.figure = formula(e); }},
        {"formula", [&](const TomlEntry& e) { made.formula = formula(e); }},
        {"where", [&](const TomlEntry& e) { made.where = selection(e); }},
        {"of", [&](const TomlEntry& e) { made.of = selection(e); }},
        {"over", [&](const TomlEntry& e) { made.over = selection(e); }},
        {"order", [&](const TomlEntry& e) { made.order = selections(e); }},
        {"axis", [&](const TomlEntry& e) { made.axis = text(e); }},
        {"direction",
         [&](const TomlEntry& e) {
           made.direction = one_of(e, {"rises", "falls", "flat"});
         }},
        {"better",
         [&](const TomlEntry& e) {
           made.better = one_of(e, {"higher", "lower"});
         }},
        {"expect", [&](const TomlEntry& e) { made.expect = real(e, any); }},
        {"within",
         [&](const TomlEntry& e) {
           made.within = real(e, {0, 1e6});
         }},
        {"at_least", [&](const TomlEntry& e) { made.at_least = real(e, any); }},
        {"at_most", [&](const TomlEntry& e) { made.at_most = real(e, any); }}};
    read(node, "[[claim.tests]]", fields);
    complete(made, node);
    return made;
  }

  // Checks that a test has everything that its kind compares, and a region.
  void complete(const ClaimTest& test, const TomlNode& node) const {
    const std::string& kind = kTestKinds[static_cast<std::size_t>(test.kind)];
    const auto need = [&](bool has, const char* what) {
      if (!has) refuse(node.line, node.column, fmt::format("a test of the kind \"{}\" needs {}", kind, what));
    };
    need(!test.figure.empty() || test.kind == TestKind::share, "a figure, e.g. figure = \"wire_bytes_per_step\"");
    const bool bounded = !std::isnan(test.expect) || std::isfinite(test.at_least) || std::isfinite(test.at_most);
    switch (test.kind) {
      case TestKind::formula: need(!test.formula.empty(), "the formula that the figure equals"); break;
      case TestKind::ratio:
      case TestKind::difference:
        need(!test.of.empty() && !test.over.empty(), "`of` and `over`: the two sides");
        need(bounded, "expect, at_least or at_most");
        break;
      case TestKind::equivalent:
        need(!test.of.empty() && !test.over.empty(), "`of` and `over`: the two sides");
        need(test.within > 0, "within: the margin inside which the sides are equal");
        break;
      case TestKind::trend:
        need(!test.axis.empty() && !test.direction.empty(), "an axis and a direction: rises, falls or flat");
        break;
      case TestKind::order: need(test.order.size() >= 2, "`order`: two selections or more, the largest first"); break;
      case TestKind::interaction:
        need(!test.of.empty() && test.order.size() >= 2, "`of` (both together) and `order` (each alone)");
        break;
      case TestKind::share:
        need(!test.formula.empty() && bounded, "formula (the condition) and at_least, at_most or expect");
        break;
    }
  }

  Origin origin_;
};

}  // namespace

std::optional<Claim> read_claim(const std::string& path) {
  const std::string text = read_file_whole(path);
  const TomlNode document = read_toml(text, path);
  for (const TomlEntry& entry : document.entries)
    if (entry.key == "claim") {
      if (entry.node.kind != TomlKind::table)
        throw ConfigError(fmt::format("{}:{}:{}: write [claim] on a line of its own", path, entry.line, entry.column));
      Claim claim = Reader(path).claim(entry.node);
      claim.hash = fmt::format("{:016x}", checksum64(rule_text(claim)));
      return claim;
    }
  return std::nullopt;
}

}  // namespace echelon::inline study
