// SPDX-License-Identifier: Apache-2.0
// echelon compare BASE NEW --weights: the distance between the weights of two trainings.
#include "cli/compare_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/text.hpp"
#include "checkpoint/weight_distance.hpp"
#include "report/writers/json_parts.hpp"

namespace echelon::cli {
namespace {

using json = nlohmann::ordered_json;

void refuse_unused(const CompareOptions& options) {
  const auto refuse = [](bool given, const char* option) {
    if (given)
      throw ConfigError(fmt::format("{} cannot be combined with --weights, which compares only weights", option));
  };
  refuse(!options.only.empty(), "--only");
  refuse(!options.allowed.empty(), "--allow");
  refuse(!options.junit.empty(), "--junit");
  refuse(options.significance != CompareOptions().significance, "--significance");
  refuse(options.tolerances.size() > 1, "a second --tolerance");
}

// Infinity if none was given.
double tolerance_of(const CompareOptions& options) {
  if (options.tolerances.empty()) return INFINITY;
  std::istringstream in(options.tolerances.front());
  double value = -1;
  if (!(in >> value) || !in.eof() || !(value >= 0))
    throw ConfigError(fmt::format("--tolerance {}: with --weights it must be a number of at least 0 (1e-4)",
                                  options.tolerances.front()));
  return value;
}

const TensorDistance& furthest_of(const std::vector<TensorDistance>& all) {
  return *std::max_element(all.begin(), all.end(), [](const TensorDistance& a, const TensorDistance& b) {
    return a.relative() < b.relative();
  });
}

std::string text_of(const std::vector<TensorDistance>& all, const WeightsFile& base, const WeightsFile& fresh) {
  Table table({"tensor", "values", "max |new - base|", "rms", "max |base|", "relative"});
  std::int64_t values = 0;
  for (const TensorDistance& one : all) {
    values += one.values;
    table.row({one.name, count_text(one.values), fmt::format("{:.3g}", one.largest),
               fmt::format("{:.3g}", one.root_mean_square), fmt::format("{:.3g}", one.largest_base),
               fmt::format("{:.2e}", one.relative())});
  }
  const TensorDistance& furthest = furthest_of(all);
  const std::string result = furthest.largest == 0 ? "all values are equal"
                                                   : fmt::format("largest difference: {}, {:.2e} of its largest value",
                                                                 furthest.name, furthest.relative());
  return fmt::format("base: {}\nnew:  {}\n\n{}\n{} values in {} tensors; {}\n", base.path(), fresh.path(), table.text(),
                     count_text(values), all.size(), result);
}

std::string json_of(const std::vector<TensorDistance>& all, const WeightsFile& base, const WeightsFile& fresh) {
  json tensors = json::array();
  for (const TensorDistance& one : all)
    tensors.push_back({{"tensor", one.name},
                       {"values", one.values},
                       {"largest", number_json(one.largest)},
                       {"root_mean_square", number_json(one.root_mean_square)},
                       {"largest_base", one.largest_base},
                       {"relative", number_json(one.relative())}});
  const TensorDistance& furthest = furthest_of(all);
  return json{{"format", "echelon-weight-distance"},
              {"version", 1},
              {"base", base.path()},
              {"new", fresh.path()},
              {"relative", number_json(furthest.relative())},
              {"furthest", furthest.name},
              {"tensors", std::move(tensors)}}
             .dump(2, ' ', false, json::error_handler_t::replace) +
         "\n";
}

}  // namespace

int compare_weights(const CompareOptions& options) {
  refuse_unused(options);
  const double tolerance = tolerance_of(options);
  const auto base = open_weights(options.base), fresh = open_weights(options.fresh);
  const std::vector<TensorDistance> all = weight_distances(*base, *fresh);
  if (all.empty()) throw DataError(fmt::format("{} has no tensors", base->path()));
  std::fputs((options.json ? json_of(all, *base, *fresh) : text_of(all, *base, *fresh)).c_str(), stdout);
  const TensorDistance& furthest = furthest_of(all);
  if (furthest.relative() <= tolerance) return kExitOk;
  if (!options.json) fmt::print("this is beyond the tolerance of {:g}\n", tolerance);
  return kExitUnmet;
}

}  // namespace echelon::cli
