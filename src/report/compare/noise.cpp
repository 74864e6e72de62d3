// SPDX-License-Identifier: Apache-2.0
#include "report/compare/noise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/hash_rng.hpp"
#include "report/compare/student.hpp"

namespace echelon::inline report {
namespace {

constexpr int kResamples = 400;  // gives a standard error within 3.5 %
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_in(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double log_of(std::vector<double>& rates, RateOf what) {
  if (what == RateOf::median_step) return std::log(median_in(rates));
  double time = 0;
  for (const double rate : rates) time += 1 / rate;
  return -std::log(time / static_cast<double>(rates.size()));
}

// The contribution of each step to the error of the figure, up to a factor: its sign about the median, or its time.
std::vector<double> influence(const std::vector<double>& rates, RateOf what) {
  std::vector<double> sorted = rates, out;
  const double middle = median_in(sorted);
  for (const double rate : rates)
    out.push_back(what == RateOf::all_steps ? 1 / rate : rate > middle ? 1.0 : rate < middle ? -1.0 : 0.0);
  return out;
}

// Autocovariances of lags 0 .. most.
std::vector<double> autocovariances(const std::vector<double>& series, std::size_t most) {
  const double mean = mean_of(series);
  std::vector<double> out;
  for (std::size_t lag = 0; lag <= most; ++lag) {
    double sum = 0;
    for (std::size_t i = lag; i < series.size(); ++i) sum += (series[i] - mean) * (series[i - lag] - mean);
    out.push_back(sum / static_cast<double>(series.size()));
  }
  return out;
}

// The first lag after which `run` consecutive correlations are insignificant; at least 1.
std::size_t last_correlated(const std::vector<double>& covariances, std::size_t run, double n) {
  const double bound = 2 * std::sqrt(std::log10(n) / n) * covariances[0];
  std::size_t quiet = 0, last = 0;
  for (std::size_t lag = 1; lag < covariances.size() && quiet < run; ++lag) {
    const bool significant = std::fabs(covariances[lag]) >= bound;
    quiet = significant ? 0 : quiet + 1;
    if (significant) last = lag;
  }
  return std::max<std::size_t>(last, 1);
}

// Circular blocks of geometric length with mean `block`, from uniform starts.
void resample(const std::vector<double>& from, double block, const HashRng& rng, std::vector<double>& to) {
  const std::size_t n = from.size();
  std::uint64_t draw = 0;
  for (std::size_t filled = 0; filled < n;) {
    const std::size_t start = rng.below(draw++, n);
    std::size_t length = 1;
    if (block > 1) {
      const double extra = std::log1p(-rng.uniform(draw++)) / std::log1p(-1 / block);
      length += static_cast<std::size_t>(std::min(extra, static_cast<double>(n)));
    }
    for (std::size_t i = 0; i < length && filled < n; ++i) to[filled++] = from[(start + i) % n];
  }
}

// Variance between attempts; none for a single attempt.
std::optional<double> between(const std::vector<Estimate>& attempts) {
  if (attempts.size() < 2) return {};
  std::vector<double> values;
  for (const Estimate& attempt : attempts) values.push_back(attempt.value);
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

}  // namespace

double block_length(const std::vector<double>& series) {
  const double n = static_cast<double>(series.size());
  const auto run = static_cast<std::size_t>(std::max(5.0, std::sqrt(std::log10(n))));
  const auto most = std::min(series.size() - 1, static_cast<std::size_t>(std::ceil(std::sqrt(n))) + run);
  const std::vector<double> covariances = autocovariances(series, most);
  if (!(covariances[0] > 0)) return 1;
  const std::size_t window = std::min(2 * last_correlated(covariances, run, n), most);
  double spectrum = covariances[0], slope = 0;  // at frequency 0; G of the paper
  for (std::size_t lag = 1; lag <= window; ++lag) {
    const double part = static_cast<double>(lag) / static_cast<double>(window);
    const double flat_top = part <= 0.5 ? 1 : 2 * (1 - part);
    spectrum += 2 * flat_top * covariances[lag];
    slope += 2 * flat_top * static_cast<double>(lag) * covariances[lag];
  }
  const double length = std::cbrt(slope * slope / (spectrum * spectrum) * n);
  return std::clamp(std::isfinite(length) ? length : 1.0, 1.0, std::max(1.0, n / 3));
}

Estimate log_rate(const std::vector<double>& rates, RateOf what) {
  const double block = block_length(influence(rates, what));
  const HashRng rng(1, "stationary bootstrap");
  std::vector<double> sample(rates.size()), values;
  for (std::uint64_t i = 0; i < kResamples; ++i) {
    resample(rates, block, rng.at(i), sample);
    values.push_back(log_of(sample, what));
  }
  const double mean = mean_of(values);
  Estimate out;
  for (const double value : values) out.variance += (value - mean) * (value - mean) / (kResamples - 1);
  std::vector<double> whole = rates;
  out.value = log_of(whole, what);
  out.freedom = std::max(1.0, static_cast<double>(rates.size()) / block - 1);
  return out;
}

Estimate combine_attempts(const std::vector<Estimate>& attempts, const std::vector<Estimate>& other) {
  const double r = static_cast<double>(attempts.size());
  Estimate out{0, 0, 0};
  for (const Estimate& attempt : attempts) {
    out.value += attempt.value / r;
    out.variance += attempt.variance / (r * r);
    out.freedom += attempt.freedom;
  }
  const auto own = between(attempts), others = between(other);
  const double spread = own.value_or(others.value_or(0)) / r;
  if (spread > out.variance) {
    out.variance = spread;
    out.freedom = own ? r - 1 : static_cast<double>(other.size()) - 1;
  }
  return out;
}

Shift welch_test(const Estimate& base, const Estimate& fresh, double significance) {
  Shift out;
  out.difference = fresh.value - base.value;
  const double variance = base.variance + fresh.variance, error = std::sqrt(variance);
  if (!(error > 0)) {
    out.low = out.high = out.difference;
    out.lower_p = out.difference < 0 ? 0 : 1;
    out.higher_p = out.difference > 0 ? 0 : 1;
    return out;
  }
  const auto share = [](const Estimate& e) { return e.variance > 0 ? e.variance * e.variance / e.freedom : 0; };
  const double shares = share(base) + share(fresh);
  const double freedom = shares > 0 ? variance * variance / shares : kInfinity;
  out.lower_p = student_below(out.difference / error, freedom);
  out.higher_p = student_below(-out.difference / error, freedom);
  const double width = -student_quantile(significance / 2, freedom) * error;
  out.low = out.difference - width;
  out.high = out.difference + width;
  return out;
}

double attempts_to_find(double shift, double variance, double significance) {
  constexpr double kMissed = 0.1;
  const double quantiles = student_quantile(significance, kInfinity) + student_quantile(kMissed, kInfinity);
  return std::max(2.0, std::ceil(quantiles * quantiles * variance / (shift * shift)));
}

}  // namespace echelon::inline report
