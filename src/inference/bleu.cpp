// SPDX-License-Identifier: Apache-2.0
#include "inference/bleu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace echelon::inline inference {
namespace {

using Grams = std::map<std::vector<std::int32_t>, std::int64_t>;

Grams grams_of(std::span<const std::int32_t> tokens, std::size_t order) {
  Grams grams;
  for (std::size_t at = 0; at + order <= tokens.size(); ++at)
    ++grams[{tokens.begin() + static_cast<std::ptrdiff_t>(at),
             tokens.begin() + static_cast<std::ptrdiff_t>(at + order)}];
  return grams;
}

}  // namespace

void BleuCounts::add(std::span<const std::int32_t> candidate, std::span<const std::int32_t> reference) {
  ++counts_[kTexts];
  counts_[kCandidate] += static_cast<double>(candidate.size());
  counts_[kReference] += static_cast<double>(reference.size());
  for (std::size_t order = 1; order <= kOrders; ++order) {
    const Grams there = grams_of(reference, order);
    for (const auto& [gram, count] : grams_of(candidate, order)) {
      const auto found = there.find(gram);
      counts_[kTotals + order - 1] += static_cast<double>(count);
      if (found != there.end()) counts_[kMatches + order - 1] += static_cast<double>(std::min(count, found->second));
    }
  }
}

std::array<double, BleuCounts::kOrders> BleuCounts::precisions() const {
  std::array<double, kOrders> all{};
  double smooth = 1;
  for (std::size_t n = 0; n < kOrders; ++n) {
    const double matches = counts_[kMatches + n], total = counts_[kTotals + n];
    if (total == 0) break;
    all[n] = matches > 0 ? 100 * matches / total : 100 / ((smooth *= 2) * total);
  }
  return all;
}

double BleuCounts::brevity() const {
  const double candidate = counts_[kCandidate], reference = counts_[kReference];
  if (candidate >= reference) return 1;
  return candidate > 0 ? std::exp(1 - reference / candidate) : 0;
}

double BleuCounts::value() const {
  double logs = 0, any = 0;
  const std::array<double, kOrders> all = precisions();
  for (std::size_t n = 0; n < kOrders; ++n) {
    if (all[n] == 0) return 0;
    logs += std::log(all[n]);
    any += counts_[kMatches + n];
  }
  return any > 0 ? brevity() * std::exp(logs / kOrders) : 0;
}

std::string BleuCounts::text() const {
  const std::array<double, kOrders> all = precisions();
  return fmt::format("{:.2f} (n-grams of 1 to 4: {:.1f}, {:.1f}, {:.1f}, {:.1f} %; brevity {:.3f})", value(), all[0],
                     all[1], all[2], all[3], brevity());
}

}  // namespace echelon::inline inference
