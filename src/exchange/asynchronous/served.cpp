// SPDX-License-Identifier: Apache-2.0
#include "exchange/asynchronous/served.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/spans.hpp"

namespace echelon::inline exchange {
namespace {

// Returns the served part of each parameter, bucket by bucket, as flat parameters for the optimiser's rule.
ParameterSet parts_of(const ParameterSet& parameters, const std::vector<ArenaRange>& own) {
  ParameterSet parts;
  for (std::size_t b = 0; b < own.size(); ++b)
    for (const Parameter& parameter : parameters.all()) {
      const ArenaRange part{std::max(own[b].begin, parameter.begin), std::min(own[b].end, parameter.end())};
      if (part.elems() <= 0) continue;
      Parameter flat = parameter;
      flat.name = fmt::format("{} of bucket {}", parameter.name, b);
      flat.shape = flat.global_shape = Shape{part.elems()};
      flat.offset = Shape{0};
      flat.folded = -1, flat.sparse = false;
      parts.add(std::move(flat));
    }
  return parts;
}

std::vector<ArenaRange> one_after_another(const std::vector<ArenaRange>& own) {
  std::vector<ArenaRange> ranges;
  for (const ArenaRange range : own) {
    const std::int64_t begin = ranges.empty() ? 0 : ranges.back().end;
    ranges.push_back({begin, begin + range.elems()});
  }
  return ranges;
}

}  // namespace

AsyncServed::AsyncServed(std::unique_ptr<Device> device, const ParameterSet& parameters, DType dtype,
                         const std::vector<ArenaRange>& own, const AsyncServing& serving)
    : own_(own),
      ranges_(one_after_another(own)),
      serving_(serving),
      device_(std::move(device)),
      served_(*device_, parts_of(parameters, own), dtype),
      runs_(served_.parameters()),
      rates_(own_.size()),
      versions_(own_.size()) {
  if (serving.optimiser) optimiser_.emplace(*serving.optimiser, served_);
  if (serving.compensation.adapts()) mean_square_ = device_->allocate(bytes_of(served_.elems()), "mean square");
  std::size_t longest = 0;
  const bool copies = serving.compensation.on() || serving.keeps_copies;
  for (int b = 0; b < static_cast<int>(own_.size()); ++b) {
    longest = std::max(longest, bytes_of_bucket(b));
    for (int w = 0; copies && range_at(b).elems() > 0 && w < serving.workers; ++w)
      copies_[{b, w}] = device_->allocate(bytes_of_bucket(b), "what a worker has");
  }
  if (serving.adds_up && !device_->on_host()) received_ = device_->allocate(longest, "an update");
}

void AsyncServed::begin(const void* all_weights) {
  const std::lock_guard lock(mutex_);
  for (int b = 0; b < static_cast<int>(own_.size()); ++b)
    device_->to_device(weights(b),
                       static_cast<const std::byte*>(all_weights) + bytes_of(own_[static_cast<std::size_t>(b)].begin),
                       bytes_of_bucket(b));
  for (const auto& [key, copy] : copies_) device_->copy(copy.data(), weights(key.first), copy.bytes());
}

void AsyncServed::add(void* to, const void* from, double factor, std::int64_t elems) const {
  const auto n = static_cast<std::size_t>(elems);
  if (factor == 1)
    device_->vector_ops().add(served_.dtype(), to, from, n);
  else
    device_->vector_ops().axpy(served_.dtype(), to, factor, from, n);
}

// Copies an update to device memory if the device is not the host. Returns its address.
std::byte* AsyncServed::receive(int b, void* values) {
  if (device_->on_host()) return static_cast<std::byte*>(values);
  void* const room = serving_.adds_up ? received_.data() : served_.gradients_at(range_at(b).begin);
  device_->to_device(room, values, bytes_of_bucket(b));
  return static_cast<std::byte*>(room);
}

void AsyncServed::compensate_update(int b, int worker, double rate, std::byte* values) {
  if (rate <= 0) return;  // the worker has no samples, or the rate is 0: the update changes nothing
  const Memory& pulled = copies_.at({b, worker});
  runs_.each(range_at(b), [&](ArenaRange run, bool statistic) {
    if (statistic) return;
    const std::size_t in_bucket = bytes_of(run.begin - range_at(b).begin);
    device_->vector_ops().compensate(
        served_.dtype(), serving_.compensation,
        {.out = values + in_bucket,
         .values = values + in_bucket,
         .rate = optimiser_ ? 0 : rate,
         .weights = served_.weights_at(run.begin),
         .pulled = pulled.bytes_at(in_bucket),
         .mean_square = mean_square_.data() ? mean_square_.bytes_at(bytes_of(run.begin)) : nullptr},
        static_cast<std::size_t>(run.elems()));
  });
}

void AsyncServed::apply(int b, int worker, const AsyncUpdate& update, double rate, void* values) {
  const std::lock_guard lock(mutex_);
  const SpanScope span(SpanKind::serve, nullptr, worker);
  const ArenaRange own = range_at(b);
  std::byte* const received = receive(b, values);
  if (serving_.compensation.on()) compensate_update(b, worker, rate, received);
  if (!optimiser_) {
    add(serving_.adds_up ? served_.gradients_at(own.begin) : served_.weights_at(own.begin), received, update.factor,
        own.elems());
  } else {
    const double weight = update.factor * rate;
    rates_[static_cast<std::size_t>(b)] += weight;
    VectorOps& ops = device_->vector_ops();
    runs_.each(own, [&](ArenaRange run, bool statistic) {
      const std::byte* from = received + bytes_of(run.begin - own.begin);
      const auto n = static_cast<std::size_t>(run.elems());
      if (statistic)
        add(serving_.adds_up ? served_.gradients_at(run.begin) : served_.weights_at(run.begin), from, update.factor,
            run.elems());
      else if (!serving_.adds_up)
        ops.copy(served_.dtype(), served_.gradients_at(run.begin), from, n);
      else if (weight > 0)
        ops.axpy(served_.dtype(), served_.gradients_at(run.begin), weight, from, n);
    });
    if (!serving_.adds_up) return step(b, std::exchange(rates_[static_cast<std::size_t>(b)], 0));
  }
  if (serving_.adds_up && update.new_version) add_sum(b);
}

// Applies the optimiser's rule to the weights of b, whose gradients are complete.
void AsyncServed::step(int b, double rate) {
  const std::int64_t version = versions_[static_cast<std::size_t>(b)]++;
  if (rate <= 0) return;
  optimiser_->begin_step(before_ + version, rate);
  runs_.each(range_at(b), [&](ArenaRange run, bool statistic) {
    if (!statistic) optimiser_->apply(run);
  });
}

void AsyncServed::flush(int b) {
  ECHELON_CHECK(serving_.adds_up, "nothing is added up");
  const std::lock_guard lock(mutex_);
  add_sum(b);
}

void AsyncServed::add_sum(int b) {
  const ArenaRange own = range_at(b);
  const double rate = std::exchange(rates_[static_cast<std::size_t>(b)], 0);
  const auto add_to_weights = [&](ArenaRange run) {
    add(served_.weights_at(run.begin), served_.gradients_at(run.begin), 1, run.elems());
  };
  if (!optimiser_) {
    add_to_weights(own);
  } else {
    runs_.each(own, [&](ArenaRange run, bool statistic) {
      if (statistic) return add_to_weights(run);
      if (rate > 0)
        device_->vector_ops().scale(served_.dtype(), served_.gradients_at(run.begin), 1 / rate,
                                    static_cast<std::size_t>(run.elems()));
    });
    step(b, rate);
  }
  device_->zero(served_.gradients_at(own.begin), bytes_of(own.elems()));
}

void AsyncServed::answer(int b, int worker, void* to) {
  const std::lock_guard lock(mutex_);
  if (void* kept = copy(b, worker)) device_->copy(kept, weights(b), bytes_of_bucket(b));
  device_->to_host(to, weights(b), bytes_of_bucket(b));
}

void AsyncServed::code_answer(int b, int worker, const AnswerCoder& code) {
  const std::lock_guard lock(mutex_);
  void* const kept = copy(b, worker);
  if (device_->on_host()) return code(weights(b), kept);
  const std::size_t bytes = bytes_of_bucket(b);
  on_host_.resize(std::max(on_host_.size(), 2 * bytes));
  device_->to_host(on_host_.data(), weights(b), bytes);
  if (!kept) return code(on_host_.data(), nullptr);
  std::byte* const copy_on_host = on_host_.data() + bytes;
  device_->to_host(copy_on_host, kept, bytes);
  code(on_host_.data(), copy_on_host);
  device_->to_device(kept, copy_on_host, bytes);
}

void AsyncServed::read(int b, const void* from, void* to) const {
  const std::lock_guard lock(mutex_);
  device_->to_host(to, from, bytes_of_bucket(b));
}

void AsyncServed::write(int b, void* to, const void* from) {
  const std::lock_guard lock(mutex_);
  device_->to_device(to, from, bytes_of_bucket(b));
}

void* AsyncServed::copy(int b, int worker) const {
  const auto kept = copies_.find({b, worker});
  return kept == copies_.end() ? nullptr : kept->second.data();
}

}  // namespace echelon::inline exchange
