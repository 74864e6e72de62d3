// SPDX-License-Identifier: Apache-2.0
#include "exchange/averaging/arena_pass.hpp"

#include <fmt/format.h>

#include <cmath>

namespace echelon::inline exchange {

ArenaPass::ArenaPass(Arenas& arenas)
    : arenas_(arenas), ops_(arenas.device().vector_ops()), elems_(static_cast<std::size_t>(arenas.elems())) {
  for (const Parameter& p : arenas.parameters().all()) {
    if (p.kind == ParameterKind::statistic) continue;
    if (!weights_.empty() && weights_.back().end == p.begin)
      weights_.back().end = p.end();
    else
      weights_.push_back({p.begin, p.end()});
  }
}

Memory ArenaPass::arena(std::string_view tag) const {
  return arenas_.device().allocate(elems_ * size_of(arenas_.dtype()), tag);
}

void ArenaPass::copy(void* to, const void* from) const { ops_.copy(arenas_.dtype(), to, from, elems_); }

void ArenaPass::clear(void* arena) const { ops_.fill(arenas_.dtype(), arena, 0, elems_); }

void ArenaPass::put_share(double share, const void* values, const void* anchor) const {
  copy(buffer(), values);
  if (anchor) ops_.axpy(arenas_.dtype(), buffer(), -1, anchor, elems_);
  ops_.scale(arenas_.dtype(), buffer(), share, elems_);
}

void ArenaPass::add_buffer(void* values, double factor) const {
  ops_.axpy(arenas_.dtype(), values, factor, buffer(), elems_);
}

void ArenaPass::add_to_buffer(const void* values) const { ops_.add(arenas_.dtype(), buffer(), values, elems_); }

void ArenaPass::stretch_buffer(double factor, const Memory& anchor) const {
  for (const ArenaRange& range : weights_) {
    const auto n = static_cast<std::size_t>(range.elems());
    ops_.scale(arenas_.dtype(), at(buffer(), range.begin), factor, n);
    ops_.axpy(arenas_.dtype(), at(buffer(), range.begin), 1 - factor, at(anchor.data(), range.begin), n);
  }
}

void ArenaPass::add(void* values, const void* more, double factor) const {
  if (factor == 1) return ops_.add(arenas_.dtype(), values, more, elems_);
  ops_.axpy(arenas_.dtype(), values, factor, more, elems_);
}

void ArenaPass::scale(void* values, double factor) const { ops_.scale(arenas_.dtype(), values, factor, elems_); }

double ArenaPass::distance_from_buffer(void* values) const {
  add_buffer(values, -1);
  double apart = 0, all = 0;
  for (const ArenaRange& range : weights_) {
    const auto n = static_cast<std::size_t>(range.elems());
    apart += ops_.sum_squares(arenas_.dtype(), at(values, range.begin), n);
    all += ops_.sum_squares(arenas_.dtype(), at(buffer(), range.begin), n);
  }
  return apart > 0 ? std::sqrt(apart / all) : 0;
}

void ArenaPass::step_outwards(OuterFactors factors, const Memory& anchor, Memory& velocity) const {
  const DType dtype = arenas_.dtype();
  for (const ArenaRange& range : weights_) {
    const auto n = static_cast<std::size_t>(range.elems());
    void *v = at(velocity.data(), range.begin), *sum = at(buffer(), range.begin);
    const void* a = at(anchor.data(), range.begin);
    ops_.axpy(dtype, sum, -1, a, n);
    ops_.scale(dtype, v, factors.momentum, n);
    ops_.axpy(dtype, v, factors.nesterov ? 1 : factors.rate, sum, n);
    if (factors.nesterov) {
      ops_.axpy(dtype, sum, factors.momentum, v, n);
      ops_.scale(dtype, sum, factors.rate, n);
      ops_.add(dtype, sum, a, n);
    } else {
      ops_.copy(dtype, sum, a, n);
      ops_.add(dtype, sum, v, n);
    }
  }
}

void ArenaPass::visit_whole(StateVisitor& visitor, std::string_view prefix, const Memory& arena) const {
  visit_arena(visitor, prefix, arenas_.device(), arenas_.parameters().all(), arenas_.dtype(), arena.data());
}

void ArenaPass::visit_by_replica(StateVisitor& visitor, std::string_view prefix, void* arena, ReplicaPosition position,
                                 OtherK other_k) const {
  visit_arena(visitor, prefix, arenas_.device(), arenas_.parameters().all(), arenas_.dtype(), arena,
              [&](std::string_view name, void* data, DType dtype, const Parameter& parameter) {
                StateTensor tensor = replica_tensor(name, data, dtype, parameter, position);
                tensor.other_k = other_k;
                return tensor;
              });
}

void ArenaPass::visit_local_states(StateVisitor& visitor, const Optimiser& optimiser, ReplicaPosition position) const {
  if (position.ranks == 1) return;
  for (int s = 0; s < optimiser.states(); ++s)
    visit_by_replica(visitor, fmt::format("strategy/local_{}", s), optimiser.state(s), position, OtherK::keep);
}

void* ArenaPass::at(void* arena, std::int64_t elem) const {
  return static_cast<std::byte*>(arena) + static_cast<std::size_t>(elem) * size_of(arenas_.dtype());
}
const void* ArenaPass::at(const void* arena, std::int64_t elem) const { return at(const_cast<void*>(arena), elem); }

}  // namespace echelon::inline exchange
