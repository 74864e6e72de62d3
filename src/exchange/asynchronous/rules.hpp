// SPDX-License-Identifier: Apache-2.0
// The rules by which an asynchronous parameter server processes updates (Dean et al., "Large Scale Distributed Deep
// Networks", NIPS 2012). A piece is the part of a bucket of parameters that one server holds. Its version is the number
// of times that its weights have changed. k workers push updates of it and are answered with its weights.
//
//   staleness   of an update: the number of versions by which the piece is ahead of the weights that the update was
//               computed on, when the server processes it. Versions from the worker's own pushes are in those weights,
//               so that staleness counts what others did between this worker's pull and its next push. With k equally
//               fast workers and S = 1 it is k - 1 on average, whatever the order.
//
// The rules can be combined in any way; without any of them this is Downpour SGD.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/check.hpp"
#include "config/schema.hpp"

namespace echelon::inline exchange {

struct AsyncRules {
  // Soft synchronisation (Zhang, Gupta, Lian, Liu, "Staleness-aware Async-SGD", IJCAI 2016): S >= 1 updates, of any
  // workers, are added up and enter the weights together, as one version. The mean staleness is (k - 1) / S.
  std::int64_t soft = 1;
  //= 0. An update with a larger staleness is dropped and counted; its worker is answered as always.
  std::optional<std::int64_t> drop_above = std::nullopt;
  // Staleness-aware rate (the same paper), > 0: the update is multiplied by scale / max(1, staleness).
  std::optional<double> scale = std::nullopt;
  // Stale-synchronous parallel (Cipar et al., HotOS 2013; Ho et al., NIPS 2013), s >= 0 in clocks. A worker's clock is
  // the number of its pushes of the piece since the last meeting. The answer to a worker at clock c is held until the
  // slowest worker that still pushes is at clock c - s or later; s = 0 is lock-step. No worker is then more than s
  // pushes ahead of the slowest, and no staleness exceeds (2s + 1)(k - 1) / S, rounded up.
  std::optional<std::int64_t> bound = std::nullopt;

  bool drops(std::int64_t staleness) const { return drop_above && staleness > *drop_above; }
  double factor(std::int64_t staleness) const {
    return scale ? *scale / static_cast<double>(std::max<std::int64_t>(1, staleness)) : 1.0;
  }
  bool releases(std::int64_t clock, std::int64_t slowest) const { return !bound || clock - *bound <= slowest; }
  // A check fails if a value is outside the ranges above, which the config refuses first.
  void check() const {
    ECHELON_CHECK_GE(soft, 1, "updates that make a version");
    ECHELON_CHECK_GE(drop_above.value_or(0), 0, "limit of staleness");
    ECHELON_CHECK_GT(scale.value_or(1), 0.0, "factor of staleness-aware rates");
    ECHELON_CHECK_GE(bound.value_or(0), 0, "bound in clocks");
  }
};

// The bound of a strategy that has one.
inline std::optional<std::int64_t> async_bound(const ExchangeConfig& config) {
  if (!strategy_traits(config.strategy).reads_table("stale_synchronous")) return std::nullopt;
  return config.stale_synchronous.bound;
}

}  // namespace echelon::inline exchange
