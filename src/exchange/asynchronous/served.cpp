#include "exchange/asynchronous/served.hpp"

#include <cstring>

namespace echelon::inline exchange {

AsyncServed::AsyncServed(const ParameterSet& parameters, DType dtype, std::vector<ArenaRange> own,
                         const AsyncServing& serving)
    : own_(std::move(own)),
      serving_(serving),
      runs_(parameters),
      host_(open_device("reference", {.only_counts = true})),
      served_(*host_, parameters, dtype),
      rates_(own_.size()),
      versions_(own_.size()) {
  if (serving.optimiser) optimiser_.emplace(*serving.optimiser, served_);
  if (serving.compensation.adapts()) mean_square_ = host_->allocate(bytes_of(served_.elems()), "mean square");
  if (!serving.compensation.on() && !serving.keeps_copies) return;
  for (int b = 0; b < static_cast<int>(own_.size()); ++b)
    for (int w = 0; w < serving.workers; ++w)
      pulled_[{b, w}].resize(bytes_of(own_[static_cast<std::size_t>(b)].elems()));
}

void AsyncServed::begin(const void* weights) {
  for (std::size_t b = 0; b < own_.size(); ++b) {
    const ArenaRange own = own_[b];
    const std::byte* from = static_cast<const std::byte*>(weights) + bytes_of(own.begin);
    std::memcpy(served_.weights_at(own.begin), from, bytes_of(own.elems()));
  }
  for (auto& [key, bytes] : pulled_) {
    const ArenaRange own = own_[static_cast<std::size_t>(key.first)];
    std::memcpy(bytes.data(), served_.weights_at(own.begin), bytes.size());
  }
}

void AsyncServed::add(void* to, const void* from, double factor, std::int64_t elems) const {
  const auto n = static_cast<std::size_t>(elems);
  if (factor == 1)
    host_vector_ops().add(served_.dtype(), to, from, n);
  else
    host_vector_ops().axpy(served_.dtype(), to, factor, from, n);
}

void AsyncServed::compensate_update(int b, int worker, double rate, void* values) {
  if (rate <= 0) return;  // of a worker without samples, or at a rate of 0: it changes nothing
  const ArenaRange own = own_[static_cast<std::size_t>(b)];
  const std::vector<std::byte>& pulled = pulled_.at({b, worker});
  runs_.each(own, [&](ArenaRange run, bool statistic) {
    if (statistic) return;
    const std::size_t at = bytes_of(run.begin - own.begin);
    std::byte* part = static_cast<std::byte*>(values) + at;
    host_vector_ops().compensate(
        served_.dtype(), serving_.compensation,
        {.out = part,
         .values = part,
         .rate = optimiser_ ? 0 : rate,
         .weights = served_.weights_at(run.begin),
         .pulled = pulled.data() + at,
         .mean_square = mean_square_.data() ? mean_square_.bytes_at(bytes_of(run.begin)) : nullptr},
        static_cast<std::size_t>(run.elems()));
  });
}

void AsyncServed::apply(int b, int worker, const AsyncUpdate& update, double rate, void* values) {
  const ArenaRange own = own_[static_cast<std::size_t>(b)];
  if (serving_.compensation.on()) compensate_update(b, worker, rate, values);
  if (!optimiser_) {
    add(serving_.adds_up ? served_.gradients_at(own.begin) : served_.weights_at(own.begin), values, update.factor,
        own.elems());
  } else {
    const double weight = update.factor * rate;
    rates_[static_cast<std::size_t>(b)] += weight;
    runs_.each(own, [&](ArenaRange run, bool statistic) {
      const std::byte* from = static_cast<const std::byte*>(values) + bytes_of(run.begin - own.begin);
      const auto n = static_cast<std::size_t>(run.elems());
      if (statistic)
        add(serving_.adds_up ? served_.gradients_at(run.begin) : served_.weights_at(run.begin), from, update.factor,
            run.elems());
      else if (!serving_.adds_up)
        host_vector_ops().copy(served_.dtype(), served_.gradients_at(run.begin), from, n);
      else if (weight > 0)
        host_vector_ops().axpy(served_.dtype(), served_.gradients_at(run.begin), weight, from, n);
    });
    if (!serving_.adds_up) return step(b, std::exchange(rates_[static_cast<std::size_t>(b)], 0));
  }
  if (serving_.adds_up && update.new_version) flush(b);
}

// The rule on the weights of b, whose gradients are there.
void AsyncServed::step(int b, double rate) {
  const std::int64_t version = versions_[static_cast<std::size_t>(b)]++;
  if (rate <= 0) return;
  optimiser_->begin_step(before_ + version, rate);
  runs_.each(own_[static_cast<std::size_t>(b)], [&](ArenaRange run, bool statistic) {
    if (!statistic) optimiser_->apply(run);
  });
}

void AsyncServed::flush(int b) {
  const ArenaRange own = own_[static_cast<std::size_t>(b)];
  const double rate = std::exchange(rates_[static_cast<std::size_t>(b)], 0);
  const auto add_sum = [&](ArenaRange run) {
    add(served_.weights_at(run.begin), served_.gradients_at(run.begin), 1, run.elems());
  };
  if (!optimiser_) {
    add_sum(own);
  } else {
    runs_.each(own, [&](ArenaRange run, bool statistic) {
      if (statistic) return add_sum(run);
      if (rate > 0)
        host_vector_ops().scale(served_.dtype(), served_.gradients_at(run.begin), 1 / rate,
                                static_cast<std::size_t>(run.elems()));
    });
    step(b, rate);
  }
  std::memset(served_.gradients_at(own.begin), 0, bytes_of(own.elems()));
}

const void* AsyncServed::answer(int b, int worker) {
  const ArenaRange own = own_[static_cast<std::size_t>(b)];
  const void* weights = served_.weights_at(own.begin);
  if (void* kept = copy(b, worker)) std::memcpy(kept, weights, bytes_of(own.elems()));
  return weights;
}

void* AsyncServed::copy(int b, int worker) {
  const auto kept = pulled_.find({b, worker});
  return kept == pulled_.end() ? nullptr : kept->second.data();
}

}  // namespace echelon::inline exchange
