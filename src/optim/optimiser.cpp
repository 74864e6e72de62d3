#include "optim/optimiser.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "device/update_rules/list.hpp"
#include "optim/rules.hpp"

namespace echelon {

Optimiser::Optimiser(const OptimiserConfig& config, Arenas& arenas)
    : config_(config), arenas_(arenas), info_(find_rule(config.rule)) {
  Device& device = arenas.device();
  for (const Parameter& p : arenas.parameters().all()) {
    if (!segments_.empty()) {
      Segment& last = segments_.back();
      const bool same = last.kind == p.kind && last.decays == p.decays &&
                        (p.kind == ParameterKind::weight || last.momentum == p.momentum);
      if (same && last.range.end == p.begin) {
        last.range.end = p.end();
        continue;
      }
    }
    segments_.push_back({{p.begin, p.end()}, p.kind, p.decays, p.momentum});
  }
  const std::size_t bytes = static_cast<std::size_t>(arenas.elems()) * size_of(arenas.dtype());
  for (std::string_view state : info_.states)
    states_.push_back(device.allocate(bytes, fmt::format("optimiser {}", state)));
  rule_ = device.make_update(info_.name, arenas.dtype());
  running_ = device.make_update(RunningAverageRule::kName, arenas.dtype());
}

void Optimiser::begin_step(std::int64_t step, double learning_rate) {
  scalars_ = {};
  scalars_.step = step;
  scalars_.learning_rate = learning_rate;
  scalars_.momentum = config_.momentum;
  scalars_.nesterov = config_.nesterov;
}

void Optimiser::apply(ArenaRange range) {
  const auto at = [&](void* base, std::int64_t elem) {
    return static_cast<void*>(static_cast<std::byte*>(base) +
                              static_cast<std::size_t>(elem) * size_of(arenas_.dtype()));
  };
  for (const Segment& segment : segments_) {
    const ArenaRange part{std::max(range.begin, segment.range.begin), std::min(range.end, segment.range.end)};
    if (part.elems() <= 0) continue;
    const auto n = static_cast<std::size_t>(part.elems());
    void* const w = arenas_.weights_at(part.begin);
    const void* const g = arenas_.gradients_at(part.begin);
    RuleScalars scalars = scalars_;
    if (segment.kind == ParameterKind::statistic) {
      scalars.momentum = segment.momentum;
      running_->apply(w, g, {}, n, scalars);
      continue;
    }
    scalars.weight_decay = segment.decays ? config_.weight_decay : 0.0;
    std::array<void*, kMaxStates> states{};
    for (std::size_t s = 0; s < states_.size(); ++s) states[s] = at(states_[s].data(), part.begin);
    rule_->apply(w, g, {states.data(), states_.size()}, n, scalars);
  }
  arenas_.touch();
}

std::size_t Optimiser::state_bytes() const {
  std::size_t bytes = 0;
  for (const Memory& state : states_) bytes += state.bytes();
  return bytes;
}

void Optimiser::visit_state(StateVisitor& visitor) {
  for (std::size_t s = 0; s < states_.size(); ++s)
    visit_arena(visitor, fmt::format("optimiser/{}", info_.states[s]), arenas_.device(), arenas_.parameters(),
                arenas_.dtype(), states_[s].data());
}

}  // namespace echelon
