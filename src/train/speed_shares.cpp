// SPDX-License-Identifier: Apache-2.0
#include "train/speed_shares.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.hpp"

namespace echelon::inline train {

std::vector<std::int64_t> shares_by_speed(const std::vector<std::int64_t>& batches, const std::vector<double>& seconds,
                                          std::int64_t unit, std::int64_t most) {
  const std::size_t k = batches.size();
  ECHELON_CHECK_EQ(seconds.size(), k, "replicas");
  const std::int64_t units = std::accumulate(batches.begin(), batches.end(), std::int64_t{0}) / unit;
  const std::int64_t cap = std::max<std::int64_t>(1, most / unit);
  std::vector<double> rates(k);  // units a second
  for (std::size_t r = 0; r < k; ++r) {
    ECHELON_CHECK(seconds[r] > 0, "replica {} took no time", r);
    rates[r] = static_cast<double>(batches[r] / unit) / seconds[r];
  }
  // One unit each; every other one goes where it is done first.
  std::vector<std::int64_t> shares(k, 1);
  for (std::int64_t given = static_cast<std::int64_t>(k); given < units; ++given) {
    std::size_t best = k;
    const auto end_s = [&](std::size_t r) { return static_cast<double>(shares[r] + 1) / rates[r]; };
    for (std::size_t r = 0; r < k; ++r)
      if (shares[r] < cap && (best == k || end_s(r) < end_s(best))) best = r;
    ECHELON_CHECK(best < k, "{} units do not fit {} replicas of at most {}", units, k, cap);
    ++shares[best];
  }
  double before_s = 0, after_s = 0;
  for (std::size_t r = 0; r < k; ++r) {
    before_s = std::max(before_s, seconds[r]);
    after_s = std::max(after_s, static_cast<double>(shares[r]) / rates[r]);
    shares[r] *= unit;
  }
  return after_s < (1 - kLeastGain) * before_s ? shares : batches;
}

}  // namespace echelon::inline train
