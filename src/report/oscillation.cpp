#include "report/oscillation.hpp"

#include <cmath>
#include <cstddef>
#include <limits>

namespace echelon::inline report {
namespace {

constexpr std::size_t kWindow = 51;

std::vector<double> rows_of(const std::vector<double>& losses, const std::vector<double>& samples,
                            double samples_a_row) {
  std::vector<double> rows;
  double sum = 0, weight = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (!std::isfinite(losses[i])) continue;
    sum += samples[i] * losses[i];
    weight += samples[i];
    if (weight < samples_a_row - 0.5) continue;
    rows.push_back(sum / weight);
    sum = weight = 0;
  }
  return rows;
}

}  // namespace

double loss_oscillation(const std::vector<double>& losses, const std::vector<double>& samples, double samples_a_row) {
  const std::vector<double> rows = rows_of(losses, samples, samples_a_row);
  const std::size_t begin = rows.size() / 2, half = kWindow / 2;
  if (rows.size() < 2 * kWindow) return std::numeric_limits<double>::quiet_NaN();
  double window = 0, squares = 0;
  for (std::size_t i = begin; i < begin + kWindow - 1; ++i) window += rows[i];
  std::size_t count = 0;
  for (std::size_t at = begin + half; at + half < rows.size(); ++at, ++count) {
    window += rows[at + half];
    const double away = rows[at] - window / static_cast<double>(kWindow);
    squares += away * away;
    window -= rows[at - half];
  }
  return std::sqrt(squares / static_cast<double>(count));
}

}  // namespace echelon::inline report
