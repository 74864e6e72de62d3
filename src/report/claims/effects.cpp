// SPDX-License-Identifier: Apache-2.0
#include "report/claims/effects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/error.hpp"
#include "report/claims/formula.hpp"

namespace echelon::inline report {
namespace {

using Keys = std::map<std::string, std::string>;
using Seeds = std::map<std::uint64_t, const ClaimCell*>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  // widens the regions for equal figures, because sums are rounded in double
constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

// Aborts the computation of a test's effects; its text becomes SeededEffects::problem.
struct Problem {
  std::string text;
};

bool number_of(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

bool same_value(const std::string& a, const std::string& b) {
  double x = 0, y = 0;
  return a == b || (number_of(a, x) && number_of(b, y) && x == y);
}

std::pair<std::string, std::string> parts_of(const std::string& selection) {
  const std::size_t at = selection.find('=');
  return {selection.substr(0, at), at == std::string::npos ? "" : selection.substr(at + 1)};
}

Keys without(Keys keys, const std::vector<CellSelection>& selections) {
  for (const CellSelection& selection : selections)
    for (const std::string& selected : selection) keys.erase(parts_of(selected).first);
  return keys;
}

// "ranks = 4, exchange.algorithm = ring"
std::string words_of(const Keys& keys) {
  std::string words;
  for (const auto& [key, value] : keys)
    if (!value.empty()) words += fmt::format("{}{} = {}", words.empty() ? "" : ", ", key, value);
  return words;
}

class Maker {
 public:
  Maker(const Claim& claim, const ClaimTest& test, const std::vector<ClaimCell>& cells) : claim_(claim), test_(test) {
    for (const ClaimCell& cell : cells)
      if (report::matches(cell, test.where)) settings_[cell.keys][cell.seed] = &cell;
    if (settings_.empty()) throw Problem{"no cell of the study matches the test"};
  }

  std::vector<SeededEffect> effects() const {
    switch (test_.kind) {
      case TestKind::formula: return formula();
      case TestKind::ratio:
      case TestKind::equivalent: return sides(true);
      case TestKind::difference: return sides(false);
      case TestKind::trend: return trend();
      case TestKind::order: return order();
      case TestKind::interaction: return interaction();
      case TestKind::share: return share();
    }
    return {};
  }

 private:
  static bool matches(const Seeds& seeds, const CellSelection& selection) {
    return report::matches(*seeds.begin()->second, selection);
  }

  double named(const ClaimCell& cell, const std::string& name, int depth = 0) const {
    if (const auto figure = cell.figures.find(name); figure != cell.figures.end()) return figure->second;
    double value = 0;
    for (const Keys* keys : {&cell.keys, &cell.sets})
      if (const auto key = keys->find(name); key != keys->end() && number_of(key->second, value)) return value;
    for (const auto& [letter, text] : claim_.let)
      if (letter == name && depth < 8)
        return evaluate_formula(text, [&](const std::string& n) { return named(cell, n, depth + 1); });
    throw Problem{fmt::format("{} has no figure or numeric key '{}'", words_of(cell.keys), name)};
  }
  double value(const ClaimCell& cell, const std::string& text) const {
    if (cell.outcome != "finished") throw Problem{fmt::format("{}: {}", words_of(cell.keys), cell.outcome)};
    const double result = evaluate_formula(text, [&](const std::string& name) { return named(cell, name); });
    if (std::isnan(result)) throw Problem{fmt::format("{}: '{}' is unknown", words_of(cell.keys), text)};
    return result;
  }
  double figure(const ClaimCell& cell) const { return value(cell, test_.figure); }

  // Sets the claimed region of a ratio's logarithm or of a difference.
  void set_region(SeededEffect& effect, bool logarithms) const {
    const auto scale = [&](double v) { return logarithms ? std::log(v) : v; };
    const double expect = test_.kind == TestKind::equivalent ? 1.0 : test_.expect;
    effect.expected = expect;
    if (!std::isnan(expect)) {
      const double margin = (logarithms ? std::log1p(test_.within) : test_.within) + kRounding;
      effect.region_low = scale(expect) - margin;
      effect.region_high = scale(expect) + margin;
    } else {
      effect.region_low = std::isinf(test_.at_least) ? -kInfinity : scale(test_.at_least);
      effect.region_high = std::isinf(test_.at_most) ? kInfinity : scale(test_.at_most);
    }
  }

  std::vector<SeededEffect> formula() const {
    std::vector<SeededEffect> made;
    for (const auto& [keys, seeds] : settings_) {
      SeededEffect effect{.what = words_of(keys)};
      effect.region_high = std::log1p(test_.within) + kRounding;
      for (const auto& [seed, cell] : seeds) {
        const double is = figure(*cell), should_be = value(*cell, test_.formula);
        if (should_be == 0) effect.region_high = test_.within;
        effect.values.push_back(should_be == 0 ? is : is == should_be ? 0 : std::log(is / should_be));
        effect.measured += is / static_cast<double>(seeds.size());
        effect.expected += should_be / static_cast<double>(seeds.size());
      }
      effect.region_low = -effect.region_high;
      made.push_back(std::move(effect));
    }
    return made;
  }

  // Figures of two settings by seed, for the seeds that both ran.
  std::vector<std::pair<double, double>> pairs(const Seeds& a, const Seeds& b) const {
    std::vector<std::pair<double, double>> found;
    for (const auto& [seed, cell] : a)
      if (const auto other = b.find(seed); other != b.end()) found.emplace_back(figure(*cell), figure(*other->second));
    if (found.empty()) throw Problem{"the two sides have no seed in common"};
    return found;
  }

  SeededEffect compared(const std::string& what, const Seeds& a, const Seeds& b, bool logarithms) const {
    SeededEffect effect{.what = what};
    for (const auto& [first, second] : pairs(a, b))
      effect.values.push_back(logarithms ? std::log(first / second) : first - second);
    double mean = 0;
    for (const double d : effect.values) mean += d / static_cast<double>(effect.values.size());
    effect.measured = logarithms ? std::exp(mean) : mean;
    set_region(effect, logarithms);
    return effect;
  }

  // Every pair of settings that match the two sides and agree in all other keys.
  std::vector<SeededEffect> matched(const CellSelection& of, const CellSelection& over, bool logarithms) const {
    std::vector<SeededEffect> made;
    for (const auto& [keys, seeds] : settings_) {
      if (!matches(seeds, of)) continue;
      for (const auto& [other, others] : settings_)
        if (matches(others, over) && without(keys, {of, over}) == without(other, {of, over}))
          made.push_back(
              compared(fmt::format("{} over {}", words_of(keys), fmt::join(over, ", ")), seeds, others, logarithms));
    }
    if (made.empty())
      throw Problem{fmt::format("no two settings match {} and {}", fmt::join(of, ", "), fmt::join(over, ", "))};
    return made;
  }

  std::vector<SeededEffect> sides(bool logarithms) const { return matched(test_.of, test_.over, logarithms); }

  std::vector<SeededEffect> order() const {
    std::vector<SeededEffect> made;
    for (std::size_t i = 0; i + 1 < test_.order.size(); ++i)
      for (SeededEffect& effect : matched(test_.order[i], test_.order[i + 1], true)) {
        effect.region_low = std::isinf(test_.at_least) ? 0 : std::log(test_.at_least);
        effect.region_high = kInfinity;
        effect.expected = kNotKnown;
        made.push_back(std::move(effect));
      }
    return made;
  }

  // Groups settings that agree in all keys but the axis, and takes their slope along its numeric values.
  std::vector<SeededEffect> trend() const {
    std::map<Keys, std::map<double, const Seeds*>> lines;
    for (const auto& [keys, seeds] : settings_) {
      double at = 0;
      const auto key = keys.find(test_.axis);
      if (key == keys.end() || !number_of(key->second, at))
        throw Problem{fmt::format("{} has no numeric key '{}'", words_of(keys), test_.axis)};
      Keys others = keys;
      others.erase(test_.axis);
      lines[others][at] = &seeds;
    }
    std::vector<SeededEffect> made;
    for (const auto& [keys, line] : lines) made.push_back(slope(keys, line));
    return made;
  }

  // Returns for each seed the least-squares slope of the figure (relative to its mean) over 0, 1, 2 .. along the axis.
  SeededEffect slope(const Keys& keys, const std::map<double, const Seeds*>& line) const {
    const auto n = static_cast<double>(line.size());
    if (line.size() < 2) throw Problem{fmt::format("'{}' has only one value", test_.axis)};
    SeededEffect effect{.what = fmt::format("{} along {}", words_of(keys), test_.axis)};
    for (const auto& [seed, first] : *line.begin()->second) {
      double sum = 0, weighted = 0, i = 0;
      const bool whole = std::all_of(line.begin(), line.end(), [&](const auto& p) { return p.second->contains(seed); });
      if (!whole) continue;
      for (const auto& [at, seeds] : line) {
        const double y = figure(*seeds->at(seed));
        sum += y;
        weighted += (i++ - (n - 1) / 2) * y;
      }
      effect.values.push_back(weighted / (n * (n * n - 1) / 12) / (sum / n));
      effect.measured += effect.values.back();
    }
    if (effect.values.empty()) throw Problem{"no seed has every value of the axis"};
    effect.measured /= static_cast<double>(effect.values.size());
    effect.expected = test_.direction == "flat" ? 0 : kNotKnown;
    const double least = std::isinf(test_.at_least) ? 0 : test_.at_least;
    const bool rises = test_.direction == "rises", falls = test_.direction == "falls";
    effect.region_low = rises ? least : falls ? -kInfinity : -test_.within;
    effect.region_high = rises ? kInfinity : falls ? -least : test_.within;
    return effect;
  }

  const Seeds& only(const CellSelection& selection) const {
    const Seeds* found = nullptr;
    for (const auto& [keys, seeds] : settings_)
      if (matches(seeds, selection)) {
        if (found != nullptr) throw Problem{fmt::format("several settings match {}", fmt::join(selection, ", "))};
        found = &seeds;
      }
    if (found == nullptr) throw Problem{fmt::format("no setting matches {}", fmt::join(selection, ", "))};
    return *found;
  }

  // Compares both remedies together with the better one of each alone.
  std::vector<SeededEffect> interaction() const {
    const bool higher = test_.better == "higher";
    SeededEffect effect{.what = fmt::format("{} compared with the better of its parts", fmt::join(test_.of, ", "))};
    for (const auto& [seed, cell] : only(test_.of)) {
      double best = higher ? -kInfinity : kInfinity;
      for (const CellSelection& part : test_.order) {
        const Seeds& alone = only(part);
        if (!alone.contains(seed)) throw Problem{"the arms have no seed in common"};
        const double y = figure(*alone.at(seed));
        best = higher ? std::max(best, y) : std::min(best, y);
      }
      effect.values.push_back(std::log(figure(*cell) / best));
      effect.measured += effect.values.back();
    }
    effect.measured = std::exp(effect.measured / static_cast<double>(effect.values.size()));
    effect.expected = kNotKnown;
    const double least = std::isinf(test_.at_least) ? 0 : std::log(test_.at_least);
    effect.region_low = higher ? least : -kInfinity;
    effect.region_high = higher ? kInfinity : -least;
    return {effect};
  }

  // The fraction of all settings for which the condition holds; "best" and "worst" are over the figure, per seed.
  std::vector<SeededEffect> share() const {
    std::map<std::uint64_t, std::vector<const ClaimCell*>> by_seed;
    for (const auto& [keys, seeds] : settings_)
      for (const auto& [seed, cell] : seeds) by_seed[seed].push_back(cell);
    SeededEffect effect{.what = fmt::format("settings with {}", test_.formula)};
    for (const auto& [seed, cells] : by_seed) {
      double best = -kInfinity, worst = kInfinity;
      for (const ClaimCell* cell : cells)
        if (cell->outcome == "finished") best = std::max(best, figure(*cell)), worst = std::min(worst, figure(*cell));
      double holds = 0;
      for (const ClaimCell* cell : cells)  // a run that diverged meets no condition
        if (cell->outcome == "finished")
          holds += evaluate_formula(test_.formula, [&](const std::string& name) {
            return name == "best"     ? best
                   : name == "worst"  ? worst
                   : name == "figure" ? figure(*cell)
                                      : named(*cell, name);
          });
      effect.values.push_back(holds / static_cast<double>(cells.size()));
      effect.measured += effect.values.back() / static_cast<double>(by_seed.size());
    }
    set_region(effect, false);
    return {effect};
  }

  const Claim& claim_;
  const ClaimTest& test_;
  std::map<Keys, Seeds> settings_;
};

}  // namespace

bool matches(const ClaimCell& cell, const CellSelection& selection) {
  return std::all_of(selection.begin(), selection.end(), [&](const std::string& selected) {
    const auto [key, value] = parts_of(selected);
    for (const Keys* keys : {&cell.keys, &cell.sets})
      if (const auto found = keys->find(key); found != keys->end()) return same_value(found->second, value);
    return false;
  });
}

SeededEffects effects_of(const Claim& claim, const ClaimTest& test, const std::vector<ClaimCell>& cells) {
  try {
    return {Maker(claim, test, cells).effects(), ""};
  } catch (const Problem& problem) {
    return {{}, problem.text};
  }
}

}  // namespace echelon::inline report
