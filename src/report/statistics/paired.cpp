// SPDX-License-Identifier: Apache-2.0
#include "report/statistics/paired.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include "base/hash_rng.hpp"
#include "report/compare/student.hpp"
#include "report/figures.hpp"

namespace echelon::inline report {
namespace {

constexpr int kExactPairs = 20;
constexpr std::uint64_t kDraws = 100'000;
constexpr std::size_t kExactRanks = 50;  // per side

// Quantile for an interval's ends, cached: a study asks for few sizes many times, and each takes 100 incomplete betas.
double interval_quantile(int freedom) {
  thread_local std::map<int, double> known;
  const auto [at, fresh] = known.try_emplace(freedom, 0.0);
  if (fresh) at->second = -student_quantile((1 - kConfidence) / 2, freedom);
  return at->second;
}

// Sums of equal patterns differ only by rounding.
double enough(double sum, double scale) { return sum - 1e-9 * scale; }

double exact_flips(const std::vector<double>& d, double seen) {
  const auto n = static_cast<unsigned>(d.size());
  double sum = std::accumulate(d.begin(), d.end(), 0.0);
  std::vector<double> sign(d.size(), 1);
  std::uint64_t hits = 0;
  const std::uint64_t patterns = std::uint64_t{1} << n;
  for (std::uint64_t i = 1; i <= patterns; ++i) {  // Gray code order: patterns differ in one sign
    hits += sum >= seen ? 1 : 0;
    if (i == patterns) break;
    const auto k = static_cast<std::size_t>(__builtin_ctzll(i));
    sign[k] = -sign[k];
    sum += 2 * sign[k] * d[k];
  }
  return static_cast<double>(hits) / static_cast<double>(patterns);
}

// The normal approximation of the rank sum, with the variance that ties leave and a correction for continuity.
double normal_rank_sum(const std::vector<std::size_t>& twice, std::size_t chosen, double seen) {
  const double n = static_cast<double>(twice.size()), m = static_cast<double>(chosen);
  const double mean = std::accumulate(twice.begin(), twice.end(), 0.0) / n;
  double squares = 0;
  for (const std::size_t rank : twice)
    squares += (static_cast<double>(rank) - mean) * (static_cast<double>(rank) - mean);
  const double variance = m * (n - m) / (n * (n - 1)) * squares;
  if (!(variance > 0)) return 1;
  return std::erfc((seen - 1 - m * mean) / std::sqrt(2 * variance)) / 2;
}

double drawn_flips(const std::vector<double>& d, double seen) {
  const HashRng rng(1, "sign flips");
  std::uint64_t hits = 1;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const HashRng signs = rng.at(draw);
    double sum = 0;
    for (std::size_t i = 0; i < d.size(); ++i) sum += signs.uniform(i) < 0.5 ? d[i] : -d[i];
    hits += sum >= seen ? 1 : 0;
  }
  return static_cast<double>(hits) / static_cast<double>(kDraws + 1);
}

}  // namespace

PairedMean paired_mean(const std::vector<double>& differences) {
  PairedMean out;
  out.n = static_cast<int>(differences.size());
  const double n = out.n;
  out.mean = std::accumulate(differences.begin(), differences.end(), 0.0) / n;
  if (out.n < 2) {
    out.sd = out.low = out.high = kUnknown;
    return out;
  }
  double squares = 0;
  for (const double d : differences) squares += (d - out.mean) * (d - out.mean);
  out.sd = std::sqrt(squares / (n - 1));
  if (out.sd <= 1e-12 * std::fabs(out.mean)) out.sd = 0;
  const double width = out.sd > 0 ? interval_quantile(out.n - 1) * out.sd / std::sqrt(n) : 0;
  out.low = out.mean - width;
  out.high = out.mean + width;
  return out;
}

double PairedMean::above(double threshold, double threshold_error) const {
  if (n < 2) return 1;
  const double error = std::hypot(sd / std::sqrt(static_cast<double>(n)), threshold_error);
  if (!(error > 0)) return mean > threshold ? 0 : 1;
  return student_below((threshold - mean) / error, n - 1);
}

double PairedMean::below(double threshold, double threshold_error) const {
  const PairedMean mirrored{.n = n, .mean = -mean, .sd = sd, .low = -high, .high = -low};
  return mirrored.above(-threshold, threshold_error);
}

double sign_flips_above(const std::vector<double>& differences, double threshold) {
  if (differences.empty()) return 1;
  std::vector<double> d = differences;
  double seen = 0, scale = 0;
  for (double& value : d) {
    value -= threshold;
    seen += value;
    scale += std::fabs(value);
  }
  return static_cast<int>(d.size()) <= kExactPairs ? exact_flips(d, enough(seen, scale))
                                                   : drawn_flips(d, enough(seen, scale));
}

double rank_sum_above(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::pair<double, bool>> all;  // value, of a
  for (const double value : a) all.emplace_back(value, true);
  for (const double value : b) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());
  std::vector<std::size_t> twice(all.size());  // the rank, doubled: mean ranks of ties are halves
  std::size_t seen = 0;
  for (std::size_t first = 0; first < all.size();) {
    std::size_t last = first;
    while (last + 1 < all.size() && all[last + 1].first == all[first].first) ++last;
    for (std::size_t i = first; i <= last; ++i) {
      twice[i] = first + last + 2;
      if (all[i].second) seen += twice[i];
    }
    first = last + 1;
  }
  if (a.empty() || b.empty()) return 1;
  if (std::max(a.size(), b.size()) > kExactRanks) return normal_rank_sum(twice, a.size(), static_cast<double>(seen));
  const std::size_t most = std::accumulate(twice.begin(), twice.end(), std::size_t{0});
  // ways[chosen][sum]: subsets of the values so far; as shares, which do not overflow.
  std::vector<std::vector<double>> ways(a.size() + 1, std::vector<double>(most + 1, 0));
  ways[0][0] = 1;
  for (const std::size_t rank : twice)
    for (std::size_t chosen = a.size(); chosen-- > 0;)
      for (std::size_t sum = most - rank + 1; sum-- > 0;) ways[chosen + 1][sum + rank] += ways[chosen][sum];
  double beyond = 0, whole = 0;
  for (std::size_t sum = 0; sum <= most; ++sum) {
    whole += ways[a.size()][sum];
    if (sum >= seen) beyond += ways[a.size()][sum];
  }
  return whole > 0 ? beyond / whole : 1;
}

}  // namespace echelon::inline report
