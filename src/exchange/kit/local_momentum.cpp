// SPDX-License-Identifier: Apache-2.0
#include "exchange/kit/local_momentum.hpp"

#include <algorithm>

#include "device/vector.hpp"

namespace echelon::inline exchange {

LocalMomentum::LocalMomentum(const OptimiserConfig& config, Arenas& arenas)
    : momentum_(config.momentum),
      decay_(config.weight_decay),
      nesterov_(config.nesterov),
      arenas_(arenas),
      velocity_(arenas.device(), arenas.elems(), arenas.dtype(), "momentum of a replica") {}

void LocalMomentum::apply(ArenaRange range, double share) {
  VectorOps& ops = arenas_.device().vector_ops();
  const DType dtype = arenas_.dtype();
  for (const Parameter& p : arenas_.parameters().all()) {
    const std::int64_t begin = std::max(p.begin, range.begin), end = std::min(p.end(), range.end);
    if (p.kind == ParameterKind::statistic || begin >= end) continue;
    const auto n = static_cast<std::size_t>(end - begin);
    void* const g = arenas_.gradients_at(begin);
    void* const u = velocity_.at(begin);
    if (p.decays && decay_ > 0) ops.axpy(dtype, g, share * decay_, arenas_.weights_at(begin), n);
    ops.scale(dtype, u, momentum_, n);
    ops.add(dtype, u, g, n);
    if (nesterov_)
      ops.axpy(dtype, g, momentum_, u, n);
    else
      ops.copy(dtype, g, u, n);
  }
}

void LocalMomentum::visit_state(StateVisitor& visitor, ReplicaPosition position) {
  velocity_.visit(visitor, "local_momentum", arenas_.parameters(), position);
}

}  // namespace echelon::inline exchange
