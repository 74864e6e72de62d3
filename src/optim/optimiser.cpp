// SPDX-License-Identifier: Apache-2.0
#include "optim/optimiser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "device/update_rules/list.hpp"
#include "optim/rules.hpp"

namespace echelon::inline optim {
namespace {

constexpr std::size_t kAsideBytes = 1 << 20;

ArenaRange overlap(ArenaRange a, ArenaRange b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

// Returns 1 if a norm is 0 (a new layer of zeros, no gradient) or NaN.
double ratio_or_one(double above, double below) { return above > 0 && below > 0 ? above / below : 1.0; }

}  // namespace

bool rows_suffice(const OptimiserConfig& config, const Parameter& parameter) {
  if (!parameter.sparse) return false;
  const bool decays = parameter.decays && config.weight_decay > 0;
  return config.lazy || (rule_of(config).name == PlainSgdRule::kName && !decays);
}

Optimiser::Optimiser(const OptimiserConfig& config, Arenas& arenas, const LossScaling& scaling, PartSums* parts)
    : config_(config),
      arenas_(arenas),
      info_(rule_of(config)),
      parts_(parts),
      own_{{0, arenas.elems()}},
      loss_scale_(scaling) {
  make_segments();
  Device& device = arenas.device();
  const std::size_t bytes = static_cast<std::size_t>(arenas.elems()) * size_of(arenas.dtype());
  for (std::string_view state : info_.states)
    states_.push_back(device.allocate(bytes, fmt::format("optimiser {}", state)));
  if (info_.trust == TrustRatio::update) {
    states_.push_back(device.allocate(bytes, "optimiser direction"));
    descend_ = device.make_update(DescendRule::kName, arenas.dtype());
  }
  if (config.average_decay > 0) {
    average_ = device.allocate(bytes, "average of weights");
    aside_ = device.allocate(std::min(bytes, kAsideBytes), "average of weights");
  }
  ECHELON_CHECK_LE(states_.size(), static_cast<std::size_t>(kMaxStates));
  rule_ = device.make_update(info_.name, arenas.dtype());
  running_ = device.make_update(RunningAverageRule::kName, arenas.dtype());
}

Optimiser::Optimiser(const Optimiser& like, Arenas& arenas)
    : config_(like.config_),
      arenas_(arenas),
      info_(like.info_),
      parts_(nullptr),
      own_{{0, arenas.elems()}},
      loss_scale_(like.loss_scale_),
      moments_begin_(like.moments_begin_) {
  ECHELON_CHECK(!like.whole_parameters() && !like.waits(), "rule {} needs more than parts of the parameters",
                info_.name);
  ECHELON_CHECK_EQ(like.arenas_.elems(), arenas.elems(),
                   "two optimisers that share steps must have arenas of equal size");
  ECHELON_CHECK(arenas.device().on_host() && like.arenas_.dtype() == arenas.dtype(),
                "the arenas must be on a host device and have the same dtype");
  make_segments();
  Device& device = arenas.device();
  for (const Memory& state : like.states_)
    states_.push_back(like.arenas_.device().on_host() ? Memory(state.data(), state.bytes(), {})
                                                      : device.allocate(state.bytes(), "optimiser states of a server"));
  rule_ = device.make_update(info_.name, arenas.dtype());
  running_ = device.make_update(RunningAverageRule::kName, arenas.dtype());
}

void Optimiser::make_segments() {
  for (int i = 0; i < arenas_.parameters().size(); ++i) {
    const Parameter& p = arenas_.parameters()[i];
    const int table = rows_suffice(config_, p) ? i : -1;
    const bool weight = p.kind == ParameterKind::weight;
    const bool adapts = info_.trust != TrustRatio::none && weight && p.decays;
    const bool slice = p.shape != p.global_shape;
    const bool counts = !parts_ || !p.shared() || parts_->counts_shared();
    ECHELON_CHECK(!slice || parts_ || !weight || !(adapts || clips()),
                  "parameter {} is split over ranks, so its norm is not known here", p.name);
    if (!segments_.empty()) {
      Segment& last = segments_.back();
      const bool same = last.kind == p.kind && last.decays == p.decays && last.counts == counts &&
                        (weight || last.momentum == p.momentum);
      if (same && !adapts && table < 0 && last.table < 0 && last.range.end == p.begin) {
        last.range.end = p.end();
        continue;
      }
    }
    if (adapts && slice) sliced_.push_back(segments_.size());
    if (adapts) adapting_.push_back(segments_.size());
    segments_.push_back({{p.begin, p.end()}, p.kind, p.decays, p.momentum, adapts, counts, table});
  }
  reserve_squares();
}

// Reserves two sums for each part that any call can request, so that no step allocates.
void Optimiser::reserve_squares() {
  const std::size_t parts = 2 * (segments_.size() + own_.size());
  asked_.reserve(parts);
  asked_for_.reserve(parts);
  squares_.reserve(parts);
}

void Optimiser::serve(std::vector<ArenaRange> ranges, Sum over_servers) {
  own_ = std::move(ranges);
  over_servers_ = std::move(over_servers);
  reserve_squares();
}

template <class Act>
void Optimiser::each_part(ArenaRange range, const Act& act) {
  for (Segment& segment : segments_)
    for (const ArenaRange own : own_)
      if (const ArenaRange part = overlap(overlap(range, own), segment.range); part.elems() > 0) act(segment, part);
}

void Optimiser::add_over_ranks(double& value) {
  if (over_servers_) over_servers_({&value, 1});
  if (parts_) parts_->over_model({&value, 1});
}

void Optimiser::begin_step(std::int64_t step, double learning_rate) {
  const std::int64_t done = step - loss_scale_.skipped();
  const auto updates = static_cast<double>(done - moments_begin_ + 1);
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
  double bad = 0;
  for (const ArenaRange own : own_)
    if (own.elems() > 0)
      bad += static_cast<double>(ops.count_not_finite(arenas_.dtype(), arenas_.gradients_at(own.begin),
                                                      static_cast<std::size_t>(own.elems())));
  add_over_ranks(bad);
  const bool finite = bad == 0;
  const bool hope = loss_scale_.update(finite);
  return finite ? Verdict::apply : hope ? Verdict::skip : Verdict::give_up;
}

double Optimiser::measure(ArenaRange range) {
  double sum = 0;
  each_part(range, [&](const Segment& segment, ArenaRange part) {
    if (segment.kind != ParameterKind::statistic && segment.counts)
      ask_squares(arenas_.gradients_at(part.begin), part, sum);
  });
  add_squares();
  return sum;
}

double Optimiser::clip(double squares) {
  add_over_ranks(squares);
  const double length = std::sqrt(squares) / step_scale_;
  const double factor = config_.clip_norm / (length + 1e-6);
  scalars_.clip = (factor < 1 || std::isnan(factor) ? factor : 1.0) / step_scale_;
  clipped_ = true;
  return length;
}

void Optimiser::apply(ArenaRange range) {
  ECHELON_CHECK(clipped_ || !clips(), "clip() was not called in step {}", scalars_.step);
  ECHELON_CHECK(accepted_ || !loss_scale_.active(), "accept() was not called in step {}", scalars_.step);
  const bool together = measures_parts();
  ECHELON_CHECK(!together || range.elems() == arenas_.elems(),
                "the norms of parts are measured over the whole arena, not over [{}, {})", range.begin, range.end);
  for (const std::size_t s : adapting_) segments_[s].weights = segments_[s].step = 0;
  each_part(range, [&](Segment& segment, ArenaRange part) {
    ECHELON_CHECK(together || !segment.adapts || part == segment.range,
                  "rule {} updates whole parameters, not [{}, {})", info_.name, part.begin, part.end);
    prepare(segment, part);
  });
  add_squares();
  if (together) add_norms();
  each_part(range, [&](const Segment& segment, ArenaRange part) {
    finish(segment, part);
    if (averages()) average(part);
  });
  arenas_.touch();
}

void Optimiser::average(ArenaRange part) {
  const auto steps = static_cast<double>(scalars_.step);
  RuleScalars scalars = scalars_;
  scalars.momentum = 1 - std::min(config_.average_decay, (1 + steps) / (10 + steps));
  running_->apply(average_.bytes_at(static_cast<std::size_t>(part.begin) * size_of(arenas_.dtype())),
                  arenas_.weights_at(part.begin), {}, static_cast<std::size_t>(part.elems()), scalars);
}

void Optimiser::begin_average() {
  if (averages()) arenas_.device().copy(average_.data(), arenas_.weights_at(0), average_.bytes());
}

void Optimiser::exchange_average() {
  if (!averages()) return;
  Device& device = arenas_.device();
  device.synchronize();
  auto* const weights = static_cast<std::byte*>(arenas_.weights_at(0));
  for (std::size_t at = 0; at < average_.bytes(); at += aside_.bytes()) {
    const std::size_t bytes = std::min(aside_.bytes(), average_.bytes() - at);
    device.copy(aside_.data(), weights + at, bytes);
    device.copy(weights + at, average_.bytes_at(at), bytes);
    device.copy(average_.bytes_at(at), aside_.data(), bytes);
  }
  device.synchronize();
  arenas_.touch();
}

void Optimiser::visit_average(StateVisitor& visitor) {
  if (averages())
    visit_arena(visitor, "average", arenas_.device(), arenas_.parameters().all(), arenas_.dtype(), average_.data());
}

// LAMB's rule only writes a direction, so it may run before norms are known.
void Optimiser::prepare(Segment& segment, ArenaRange part) {
  if (segment.adapts) ask_squares(arenas_.weights_at(part.begin), part, segment.weights);
  if (segment.adapts && info_.trust == TrustRatio::gradient)
    ask_squares(arenas_.gradients_at(part.begin), part, segment.step);
  if (info_.trust != TrustRatio::update || segment.kind == ParameterKind::statistic) return;
  run_rule(segment, part, scalars_);
  if (segment.adapts) ask_squares(direction_at(part.begin), part, segment.step);
}

// Sums the norms of parameters whose parts are on several servers, and of slices of tensors.
void Optimiser::add_norms() {
  const auto add = [&](const std::vector<std::size_t>& segments, const Sum& sum) {
    norm_sums_.clear();
    for (const std::size_t s : segments) {
      norm_sums_.push_back(segments_[s].weights);
      norm_sums_.push_back(segments_[s].step);
    }
    if (!norm_sums_.empty()) sum(norm_sums_);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      segments_[segments[i]].weights = norm_sums_[2 * i];
      segments_[segments[i]].step = norm_sums_[2 * i + 1];
    }
  };
  if (over_servers_) add(adapting_, over_servers_);
  if (!sliced_.empty()) add(sliced_, [&](std::span<double> values) { parts_->over_slices(values); });
}

void Optimiser::finish(const Segment& segment, ArenaRange part) {
  RuleScalars scalars = scalars_;
  const auto n = static_cast<std::size_t>(part.elems());
  void* const w = arenas_.weights_at(part.begin);
  if (segment.kind == ParameterKind::statistic) {
    scalars.momentum = segment.momentum;
    return running_->apply(w, arenas_.gradients_at(part.begin), {}, n, scalars);
  }
  const double length = std::sqrt(segment.weights), step = std::sqrt(segment.step);
  if (info_.trust == TrustRatio::update) {
    scalars.weight_decay = segment.decays ? config_.weight_decay : 0.0;
    if (segment.adapts) scalars.trust = ratio_or_one(length, step);
    return descend_->apply(w, direction_at(part.begin), {}, n, scalars);
  }
  const double slope = scalars.clip * step;
  if (segment.adapts && slope > 0)
    scalars.trust = ratio_or_one(config_.trust_coefficient * length, slope + config_.weight_decay * length);
  run_rule(segment, part, scalars);
}

void Optimiser::run_rule(const Segment& segment, ArenaRange part, const RuleScalars& with) {
  void* const w = arenas_.weights_at(part.begin);
  const void* const g = arenas_.gradients_at(part.begin);
  std::array<void*, kMaxStates> states{};
  for (std::size_t s = 0; s < states_.size(); ++s)
    states[s] = states_[s].bytes_at(static_cast<std::size_t>(part.begin) * size_of(arenas_.dtype()));
  RuleScalars scalars = with;
  scalars.weight_decay = segment.decays && !strategy_has_momentum(config_) ? config_.weight_decay : 0.0;
  if (segment.table >= 0 && part == segment.range && arenas_.tracks_rows()) {
    rule_->apply_rows(w, g, {states.data(), states_.size()}, arenas_.row_marks(segment.table), scalars);
    return;
  }
  ECHELON_CHECK(segment.table < 0 || !config_.lazy || !arenas_.device().computes(),
                "lazy updates need the row marks of a whole table, not of [{}, {})", part.begin, part.end);
  rule_->apply(w, g, {states.data(), states_.size()}, static_cast<std::size_t>(part.elems()), scalars);
}

void Optimiser::ask_squares(const void* values, ArenaRange part, double& sum) {
  asked_.push_back({values, static_cast<std::size_t>(part.elems())});
  asked_for_.push_back(&sum);
}

void Optimiser::add_squares() {
  squares_.resize(asked_.size());
  if (!asked_.empty()) arenas_.device().vector_ops().sums_of_squares(arenas_.dtype(), asked_, squares_);
  for (std::size_t i = 0; i < asked_.size(); ++i) *asked_for_[i] += squares_[i];
  asked_.clear();
  asked_for_.clear();
}

void* Optimiser::direction_at(std::int64_t elem) const {
  return states_.back().bytes_at(static_cast<std::size_t>(elem) * size_of(arenas_.dtype()));
}

std::size_t Optimiser::state_bytes() const {
  std::size_t bytes = 0;
  for (const Memory& state : states_) bytes += state.bytes();
  return bytes + average_.bytes() + aside_.bytes();
}

void Optimiser::visit_state(StateVisitor& visitor) {
  loss_scale_.visit_state(visitor);
  if (info_.unbiases) visitor.scalar("moments_begin", moments_begin_, Absent::kept);
  for (std::size_t s = 0; s < info_.states.size(); ++s)
    visit_arena(visitor, fmt::format("optimiser/{}", info_.states[s]), arenas_.device(), arenas_.parameters().all(),
                arenas_.dtype(), states_[s].data());
}

}  // namespace echelon::inline optim
