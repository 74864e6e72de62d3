// SPDX-License-Identifier: Apache-2.0
// echelon compare: compares runs of two builds and exits with code 8 if anything got worse.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "cli/compare_weights.hpp"
#include "cli/options.hpp"
#include "report/compare/comparison.hpp"
#include "report/writers/comparison.hpp"

namespace echelon::cli {
namespace {

std::size_t group_of(const std::string& name, const char* option) {
  const std::vector<std::string> known(kFigureGroups.begin(), kFigureGroups.end());
  const auto at = std::find(known.begin(), known.end(), name);
  if (at == known.end()) throw ConfigError(fmt::format("{}: {}", option, unknown_name("group", name, known)));
  return static_cast<std::size_t>(at - known.begin());
}

// "0.05" sets throughput; "memory=0.1" sets a group.
void set_tolerance(const std::string& text, CompareSettings& settings) {
  const auto equals = text.find('=');
  const std::string group = equals == std::string::npos ? "throughput" : text.substr(0, equals);
  std::istringstream in(equals == std::string::npos ? text : text.substr(equals + 1));
  double value = -1;
  if (!(in >> value) || !in.eof() || !(value >= 0 && value <= 100))
    throw ConfigError(
        fmt::format("--tolerance {}: must be a fraction of at least 0 for throughput (0.03), or one with the name of a "
                    "group (memory=0.1)",
                    text));
  settings.tolerance[group_of(group, "--tolerance")] = value;
}

CompareSettings settings_of(const CompareOptions& options) {
  CompareSettings settings;
  for (const std::string& text : options.tolerances) set_tolerance(text, settings);
  if (!options.only.empty()) settings.included.fill(false);
  for (const std::string& name : options.only) settings.included[group_of(name, "--only")] = true;
  if (!(options.significance > 0 && options.significance < 0.5))
    throw ConfigError(
        fmt::format("--significance {}: must be a probability above 0 and below 0.5", options.significance));
  settings.significance = options.significance;
  settings.allowed = options.allowed;
  return settings;
}

}  // namespace

int run_compare(const CompareOptions& options) {
  if (options.weights) return compare_weights(options);
  const CompareSettings settings = settings_of(options);
  const Comparison comparison = compare_runs(read_runs({options.base}), read_runs({options.fresh}), settings);
  std::fputs((options.json ? comparison_json(comparison) : comparison_text(comparison)).c_str(), stdout);
  if (!options.junit.empty()) write_file_whole(options.junit, comparison_junit(comparison));
  return comparison.count(Change::worse) > 0 ? kExitUnmet : kExitOk;
}

}  // namespace echelon::cli
