// SPDX-License-Identifier: Apache-2.0
#include "data/import/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace echelon::inline data {
namespace {

using Moments = Statistics::Moments;

// Moments of one plane, from exact sums of bytes.
Moments moments_of(const std::uint8_t* values, std::int64_t n) {
  std::uint64_t sum = 0, squares = 0;
  std::uint8_t least = 255, greatest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += values[i];
    squares += static_cast<std::uint64_t>(values[i]) * values[i];
    least = std::min(least, values[i]);
    greatest = std::max(greatest, values[i]);
  }
  const double mean = static_cast<double>(sum) / static_cast<double>(n);
  return {static_cast<double>(n), mean, static_cast<double>(squares) - mean * static_cast<double>(sum),
          static_cast<double>(least), static_cast<double>(greatest)};
}

Moments moments_of(const float* values, std::int64_t n) {
  Moments m{static_cast<double>(n), 0, 0, values[0], values[0]};
  for (std::int64_t i = 0; i < n; ++i) {
    m.mean += static_cast<double>(values[i]);
    m.least = std::min(m.least, static_cast<double>(values[i]));
    m.greatest = std::max(m.greatest, static_cast<double>(values[i]));
  }
  m.mean /= m.n;
  for (std::int64_t i = 0; i < n; ++i) m.squares += std::pow(static_cast<double>(values[i]) - m.mean, 2);
  return m;
}

}  // namespace

Statistics::Statistics(const SourceInfo& info) : info_(info), channels_(static_cast<std::size_t>(info.sample[0])) {}

// Merges the moments of two sets, after Chan, Golub and LeVeque (1979).
void Statistics::merge(Moments& into, const Moments& part) {
  if (into.n == 0) {
    into = part;
    return;
  }
  const double n = into.n + part.n, apart = part.mean - into.mean;
  into.mean += apart * part.n / n;
  into.squares += part.squares + apart * apart * into.n * part.n / n;
  into.n = n;
  into.least = std::min(into.least, part.least);
  into.greatest = std::max(into.greatest, part.greatest);
}

void Statistics::add(const std::uint8_t* samples, std::int64_t count) {
  const std::int64_t plane = info_.sample.without_front().elems();
  const std::size_t bytes = static_cast<std::size_t>(plane) * size_of(info_.stored);
  for (std::int64_t i = 0; i < count; ++i)
    for (Moments& channel : channels_) {
      const Moments m = info_.stored == DType::u8 ? moments_of(samples, plane)
                                                  : moments_of(reinterpret_cast<const float*>(samples), plane);
      merge(channel, m);
      samples += bytes;
    }
}

void Statistics::add(const std::vector<Moments>& part) {
  for (std::size_t c = 0; c < channels_.size(); ++c)
    if (part[c].n > 0) merge(channels_[c], part[c]);
}

std::vector<double> Statistics::mean() const {
  std::vector<double> values;
  for (const Moments& channel : channels_) values.push_back(channel.mean * info_.scale);
  return values;
}

std::vector<double> Statistics::std() const {
  std::vector<double> values;
  for (const Moments& channel : channels_) {
    const double deviation = channel.n > 0 ? std::sqrt(std::max(0.0, channel.squares / channel.n)) * info_.scale : 0;
    values.push_back(deviation > 0 ? deviation : 1.0);
  }
  return values;
}

std::vector<double> Statistics::value_range() const {
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  for (const Moments& channel : channels_) {
    least = std::min(least, channel.least);
    greatest = std::max(greatest, channel.greatest);
  }
  return {least, greatest};
}

}  // namespace echelon::inline data
