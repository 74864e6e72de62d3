// SPDX-License-Identifier: Apache-2.0
#include "report/codec_accuracy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/text.hpp"
#include "config/traits/codecs.hpp"
#include "report/statistics/looks.hpp"
#include "report/statistics/paired.hpp"

namespace echelon::inline report {
namespace {

constexpr double kTolerated = 0.01;

// Accuracies by seed; several runs with one seed are averaged.
struct Accuracies {
  std::map<std::uint64_t, std::vector<double>> by_seed;
  void add(const RunRecord& run) { by_seed[run.provenance.seed].push_back(run.test_accuracy); }
  static double mean_of(const std::vector<double>& all) {
    double sum = 0;
    for (const double value : all) sum += value;
    return sum / static_cast<double>(all.size());
  }
  std::vector<double> values() const {
    std::vector<double> all;
    for (const auto& [seed, values] : by_seed) all.push_back(mean_of(values));
    return all;
  }
  double mean() const { return mean_of(values()); }
  std::string text() const { return fmt::format("{:.2f} % ({})", 100 * mean(), counted(std::ssize(by_seed), "seed")); }
};

// The accuracy that `coded` lost, seed by seed.
std::vector<double> losses(const Accuracies& coded, const Accuracies& without) {
  std::vector<double> lost;
  for (const auto& [seed, values] : coded.by_seed)
    if (const auto same = without.by_seed.find(seed); same != without.by_seed.end())
      lost.push_back(Accuracies::mean_of(same->second) - Accuracies::mean_of(values));
  return lost;
}

// "costs 5.50 points of test accuracy (95 % interval 4.10 to 6.90)"; "" if no warning is needed.
std::string cost_text(const Accuracies& coded, const Accuracies& without) {
  const std::vector<double> pairs = losses(coded, without);
  if (std::ssize(pairs) < kLeastTimings) {  // too few to name a winner, so too few to name a loser
    const double lost = without.mean() - coded.mean();
    if (lost <= kTolerated + 1e-9) return {};
    return fmt::format("has {:.2f} points less test accuracy (from {} of seeds, too few to be significant)", 100 * lost,
                       counted(std::ssize(pairs), "pair"));
  }
  const PairedMean mean = paired_mean(pairs);
  if (mean.mean <= kTolerated + 1e-9 || mean.low <= 0) return {};
  return fmt::format("costs {:.2f} points of test accuracy (95 % interval {:.2f} to {:.2f})", 100 * mean.mean,
                     100 * mean.low, 100 * mean.high);
}

using Trained = std::tuple<std::string, std::int64_t, std::int64_t>;  // experiment, epochs, steps
Trained trained(const RunRecord& run) { return {run.experiment, run.epochs, run.steps}; }

bool counts(const RunRecord& run) { return !run.paced && std::isfinite(run.test_accuracy); }
bool exact(const RunRecord& run) {
  const CodecTraits* codec = find_traits(kCodecs, run.codec);
  return !codec || !codec->lossy;
}

}  // namespace

std::vector<std::string> codec_warnings(const std::vector<RunRecord>& runs) {
  std::map<Trained, Accuracies> plain;
  std::map<std::pair<Trained, int>, Accuracies> plain_by_ranks;
  std::map<std::tuple<Trained, std::string, int>, Accuracies> coded;
  for (const RunRecord& run : runs) {
    if (!counts(run)) continue;
    if (exact(run)) {
      plain[trained(run)].add(run);
      plain_by_ranks[{trained(run), run.ranks}].add(run);
    } else {
      coded[{trained(run), run.codec_text, run.ranks}].add(run);
    }
  }
  std::vector<std::string> warnings;
  for (const auto& [key, accuracies] : coded) {
    const auto& [same, codec, ranks] = key;
    const auto everywhere = plain.find(same);
    if (everywhere == plain.end()) continue;
    const auto here = plain_by_ranks.find({same, ranks});
    const Accuracies& without = here != plain_by_ranks.end() ? here->second : everywhere->second;
    if (const std::string cost = cost_text(accuracies, without); !cost.empty())
      warnings.push_back(fmt::format("codec {} on {} {}: {} versus {} without a codec after {} steps", codec,
                                     counted(ranks, "rank"), cost, accuracies.text(), without.text(),
                                     std::get<2>(same)));
  }
  return warnings;
}

}  // namespace echelon::inline report
