#include "optim/optimiser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "device/update_rules/list.hpp"
#include "optim/rules.hpp"

namespace echelon {
namespace {

ArenaRange overlap(ArenaRange a, ArenaRange b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

// 1 where a norm is 0 (a fresh layer of zeros, no gradient) or no number.
double ratio_or_one(double above, double below) { return above > 0 && below > 0 ? above / below : 1.0; }

}  // namespace

bool rows_suffice(const OptimiserConfig& config, const Parameter& parameter) {
  if (!parameter.sparse) return false;
  const bool decays = parameter.decays && config.weight_decay > 0;
  return config.lazy || (config.rule == SgdRule::kName && config.momentum == 0 && !decays);
}

Optimiser::Optimiser(const OptimiserConfig& config, Arenas& arenas, const LossScaling& scaling)
    : config_(config), arenas_(arenas), info_(find_rule(config.rule)), loss_scale_(scaling) {
  make_segments();
  Device& device = arenas.device();
  const std::size_t bytes = static_cast<std::size_t>(arenas.elems()) * size_of(arenas.dtype());
  for (std::string_view state : info_.states)
    states_.push_back(device.allocate(bytes, fmt::format("optimiser {}", state)));
  if (info_.trust == TrustRatio::update) {
    states_.push_back(device.allocate(bytes, "optimiser direction"));
    descend_ = device.make_update(DescendRule::kName, arenas.dtype());
  }
  ECHELON_CHECK_LE(states_.size(), static_cast<std::size_t>(kMaxStates));
  rule_ = device.make_update(info_.name, arenas.dtype());
  running_ = device.make_update(RunningAverageRule::kName, arenas.dtype());
}

void Optimiser::make_segments() {
  for (int i = 0; i < arenas_.parameters().size(); ++i) {
    const Parameter& p = arenas_.parameters()[i];
    const int table = rows_suffice(config_, p) ? i : -1;
    const bool weight = p.kind == ParameterKind::weight;
    const bool adapts = info_.trust != TrustRatio::none && weight && p.decays;
    ECHELON_CHECK(p.shape == p.global_shape || !weight || !(adapts || clips()),
                  "parameter {} is split over ranks: its norm is not known here", p.name);
    if (!segments_.empty()) {
      Segment& last = segments_.back();
      const bool same = last.kind == p.kind && last.decays == p.decays && (weight || last.momentum == p.momentum);
      if (same && !adapts && table < 0 && last.table < 0 && last.range.end == p.begin) {
        last.range.end = p.end();
        continue;
      }
    }
    segments_.push_back({{p.begin, p.end()}, p.kind, p.decays, p.momentum, adapts, table});
  }
}

void Optimiser::begin_step(std::int64_t step, double learning_rate) {
  const std::int64_t done = step - loss_scale_.skipped();
  const auto updates = static_cast<double>(done + 1);
  step_scale_ = loss_scale_.value();
  scalars_ = {};
  scalars_.step = done;
  scalars_.clip = 1 / step_scale_;
  scalars_.learning_rate = learning_rate;
  scalars_.momentum = config_.momentum;
  scalars_.nesterov = config_.nesterov;
  scalars_.beta1 = config_.beta1;
  scalars_.beta2 = info_.name == RmspropRule::kName ? config_.alpha : config_.beta2;
  scalars_.epsilon = config_.epsilon;
  scalars_.unbias1 = 1 / (1 - std::pow(config_.beta1, updates));
  scalars_.unbias2 = 1 / std::sqrt(1 - std::pow(config_.beta2, updates));
  clipped_ = accepted_ = false;
}

Optimiser::Verdict Optimiser::accept() {
  accepted_ = true;
  if (!loss_scale_.active()) return Verdict::apply;
  VectorOps& ops = arenas_.device().vector_ops();
  const auto n = static_cast<std::size_t>(arenas_.elems());
  const bool finite = ops.count_not_finite(arenas_.dtype(), arenas_.gradients_at(0), n) == 0;
  const bool hope = loss_scale_.update(finite);
  return finite ? Verdict::apply : hope ? Verdict::skip : Verdict::give_up;
}

double Optimiser::measure(ArenaRange range) {
  double squares = 0;
  for (const Segment& segment : segments_) {
    const ArenaRange part = overlap(range, segment.range);
    if (segment.kind == ParameterKind::statistic || part.elems() <= 0) continue;
    squares += arenas_.device().vector_ops().sum_squares(arenas_.dtype(), arenas_.gradients_at(part.begin),
                                                         static_cast<std::size_t>(part.elems()));
  }
  return squares;
}

double Optimiser::clip(double squares) {
  const double length = std::sqrt(squares) / step_scale_;
  const double factor = config_.clip_norm / (length + 1e-6);
  scalars_.clip = (factor < 1 || std::isnan(factor) ? factor : 1.0) / step_scale_;
  clipped_ = true;
  return length;
}

double Optimiser::norm(const void* values, std::int64_t n) {
  return std::sqrt(arenas_.device().vector_ops().sum_squares(arenas_.dtype(), values, static_cast<std::size_t>(n)));
}

void Optimiser::apply(ArenaRange range) {
  ECHELON_CHECK(clipped_ || !clips(), "the gradient's norm is missing in step {}", scalars_.step);
  ECHELON_CHECK(accepted_ || !loss_scale_.active(), "nobody looked at the gradients of step {}", scalars_.step);
  for (const Segment& segment : segments_) {
    const ArenaRange part = overlap(range, segment.range);
    if (part.elems() <= 0) continue;
    if (segment.kind == ParameterKind::weight) {
      apply_rule(segment, part);
      continue;
    }
    RuleScalars scalars = scalars_;
    scalars.momentum = segment.momentum;
    running_->apply(arenas_.weights_at(part.begin), arenas_.gradients_at(part.begin), {},
                    static_cast<std::size_t>(part.elems()), scalars);
  }
  arenas_.touch();
}

void Optimiser::apply_rule(const Segment& segment, ArenaRange part) {
  ECHELON_CHECK(!segment.adapts || part == segment.range, "rule {} takes whole parameters, not [{}, {})", info_.name,
                part.begin, part.end);
  const auto n = static_cast<std::size_t>(part.elems());
  void* const w = arenas_.weights_at(part.begin);
  const void* const g = arenas_.gradients_at(part.begin);
  std::array<void*, kMaxStates> states{};
  for (std::size_t s = 0; s < states_.size(); ++s)
    states[s] = states_[s].bytes_at(static_cast<std::size_t>(part.begin) * size_of(arenas_.dtype()));
  RuleScalars scalars = scalars_;
  scalars.weight_decay = segment.decays ? config_.weight_decay : 0.0;
  const double length = segment.adapts ? norm(w, part.elems()) : 0;
  if (segment.adapts && info_.trust == TrustRatio::gradient) {
    const double slope = scalars.clip * norm(g, part.elems());
    if (slope > 0)
      scalars.trust = ratio_or_one(config_.trust_coefficient * length, slope + config_.weight_decay * length);
  }
  if (segment.table >= 0 && part == segment.range && arenas_.tracks_rows()) {
    rule_->apply_rows(w, g, {states.data(), states_.size()}, arenas_.row_marks(segment.table), scalars);
    return;
  }
  ECHELON_CHECK(segment.table < 0 || !config_.lazy || !arenas_.device().computes(),
                "lazy updates need marks of whole tables, not [{}, {})", part.begin, part.end);
  rule_->apply(w, g, {states.data(), states_.size()}, n, scalars);
  if (info_.trust != TrustRatio::update) return;
  const void* const direction = states[states_.size() - 1];
  if (segment.adapts) scalars.trust = ratio_or_one(length, norm(direction, part.elems()));
  descend_->apply(w, direction, {}, n, scalars);
}

std::size_t Optimiser::state_bytes() const {
  std::size_t bytes = 0;
  for (const Memory& state : states_) bytes += state.bytes();
  return bytes;
}

void Optimiser::visit_state(StateVisitor& visitor) {
  loss_scale_.visit_state(visitor);
  for (std::size_t s = 0; s < info_.states.size(); ++s)
    visit_arena(visitor, fmt::format("optimiser/{}", info_.states[s]), arenas_.device(), arenas_.parameters(),
                arenas_.dtype(), states_[s].data());
}

}  // namespace echelon
