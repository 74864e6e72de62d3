// SPDX-License-Identifier: Apache-2.0
#include "data/mix.hpp"

#include <algorithm>
#include <cmath>

namespace echelon::inline data {
namespace {

enum Draw : std::uint64_t { kOther, kWhich, kCentre };  // centres take three
enum Part : std::uint64_t { kShare = 16, kFirst = 0, kSecond = 1 };

// Gamma(alpha, 1), as its logarithm: small alphas give values below the least double.
double log_gamma_draw(const HashRng& draws, double alpha) {
  const double boosted = alpha < 1 ? alpha + 1 : alpha;
  const double d = boosted - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (std::uint64_t attempt = 1;; ++attempt) {
    const HashRng draw = draws.at(attempt);
    const double x = hash_normal(draw, 0), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, u = 1 - draw.uniform(2);  // in (0, 1]
    if (std::log(u) >= 0.5 * x * x + d - d * v + d * std::log(v)) continue;
    const double log_value = std::log(d * v);
    return alpha < 1 ? log_value + std::log(1 - draws.uniform(0)) / alpha : log_value;
  }
}

}  // namespace

double beta_draw(const HashRng& draws, double alpha) {
  const double first = log_gamma_draw(draws.at(kFirst), alpha), second = log_gamma_draw(draws.at(kSecond), alpha);
  return 1 / (1 + std::exp(second - first));
}

std::vector<std::int64_t> SampleMixer::pool(const std::vector<SampleSlot>& slots) {
  std::vector<std::int64_t> ids;
  for (const SampleSlot& slot : slots)
    if (slot.counts) ids.push_back(slot.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::int64_t SampleMixer::other(const std::vector<std::int64_t>& pool, std::int64_t epoch, std::int64_t id) const {
  return pool.empty() ? id : pool[draws(epoch, id).below(kOther, pool.size())];
}

Mixture SampleMixer::mixture(const Shape& shape, std::int64_t epoch, std::int64_t id) const {
  const HashRng all = draws(epoch, id);
  Mixture mixture;
  mixture.cuts = keys_.cutmix > 0 && (keys_.mixup == 0 || all.below(kWhich, 2) == 1);
  mixture.own = beta_draw(all.at(kShare), mixture.cuts ? keys_.cutmix : keys_.mixup);
  if (!mixture.cuts) return mixture;
  const std::array<std::int64_t, 3> extents = planes_of(shape).extents();
  const int axes = shape.rank() - 1;
  const double share = std::pow(1 - mixture.own, 1.0 / axes);
  mixture.box.end = {1, 1, 1};
  for (auto a = static_cast<std::size_t>(3 - axes); a < 3; ++a) {
    const auto half = static_cast<std::int64_t>(static_cast<double>(extents[a]) * share) / 2;
    const auto centre = static_cast<std::int64_t>(all.below(kCentre + a, static_cast<std::uint64_t>(extents[a])));
    mixture.box.begin[a] = std::max<std::int64_t>(centre - half, 0);
    mixture.box.end[a] = std::min(centre + half, extents[a]);
  }
  const auto places = static_cast<double>(shape.without_front().elems());
  mixture.own = 1 - static_cast<double>(mixture.box.places()) / places;
  return mixture;
}

void SampleMixer::apply(const Mixture& mixture, void* sample, const void* other, const Shape& shape, DType dtype) {
  with_float(dtype, [&]<class T>(T) {
    T* const to = static_cast<T*>(sample);
    const T* const from = static_cast<const T*>(other);
    if (mixture.cuts) {
      each_run(planes_of(shape), mixture.box,
               [&](std::int64_t at, std::int64_t count) { std::copy_n(from + at, count, to + at); });
      return;
    }
    const T own = static_cast<T>(mixture.own), rest = static_cast<T>(1 - mixture.own);
    for (std::int64_t i = 0; i < shape.elems(); ++i) to[i] = own * to[i] + rest * from[i];
  });
}

}  // namespace echelon::inline data
