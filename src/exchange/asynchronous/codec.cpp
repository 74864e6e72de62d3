#include "exchange/asynchronous/codec.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "base/hash_rng.hpp"
#include "device/vector.hpp"
#include "exchange/buckets.hpp"
#include "exchange/residual_state.hpp"

namespace echelon::inline exchange {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Of the same bytes, exclusive or into `to`.
void flip(std::byte* to, const std::byte* bits, std::size_t bytes) {
#pragma omp simd
  for (std::size_t i = 0; i < bytes; ++i) to[i] ^= bits[i];
}

}  // namespace

AsyncCodec::AsyncCodec(const ExchangeConfig& config, const ParameterSet& parameters, Layout layout)
    : lossy_(codec_info(config.codec).lossy),
      feedback_(config.error_feedback),
      warmup_steps_(config.codec_warmup_steps),
      parameters_(parameters),
      layout_(std::move(layout)),
      runs_(parameters),
      tally_(layout_.buckets.size()) {
  if (lossy_) residual_.resize(index(parameters.elems()));
  for (int b = 0; b < static_cast<int>(layout_.buckets.size()); ++b) {
    const ArenaRange bucket = layout_.buckets[index(b)];
    const auto make = [&](const Parts& of, std::span<float> residual, bool pull) {
      return ServerForm::make(config, parameters, layout_.dtype, bucket, of, residual, pull);
    };
    std::span<float> residual;
    if (lossy_) residual = std::span(residual_).subspan(index(bucket.begin), index(bucket.elems()));
    pushes_.push_back({.form = make(layout_.parts[index(b)], residual, false)});
    const ElemRange own = part(b, layout_.rank);
    for (int w = 0; w < layout_.workers && !own.empty(); ++w) answers_[{b, w}] = make({own}, {}, true);
  }
}

ArenaRange AsyncCodec::place(int b, int server) const {
  const std::int64_t begin = layout_.buckets[index(b)].begin;
  return {begin + part(b, server).begin, begin + part(b, server).end};
}

std::size_t AsyncCodec::most_bytes(int b, int server) const {
  return pushes_[index(b)].form->most_bytes(part(b, server));
}

double AsyncCodec::formula_bytes(int b, const AllreduceRequest& request) const {
  if (warmup_steps_ > 0) return std::numeric_limits<double>::quiet_NaN();
  return coded_server_bytes(*pushes_[index(b)].form, request);
}

std::uint64_t AsyncCodec::key(const char* way, std::int64_t step, int worker, int b) const {
  const auto word = [](auto value) { return static_cast<std::uint64_t>(value); };
  return HashRng(layout_.seed, way)
      .at(word(step))
      .at(word(worker))
      .at(bucket_key(parameters_, layout_.buckets[index(b)]))
      .key();
}

// Of values of the arenas' dtype; valid until the next call.
std::byte* AsyncCodec::scratch(ElemRange range) {
  scratch_.resize(std::max(scratch_.size(), index(range.elems()) * size_of(layout_.dtype)));
  return scratch_.data();
}

void AsyncCodec::count(ServerForm& form) {
  const std::lock_guard lock(mutex_);
  tally_.add(form.take_encoded());
}

void AsyncCodec::before_push(std::size_t b, std::int64_t step, bool counts) {
  pushes_[b].step = step;
  pushes_[b].counts = counts;
}

void AsyncCodec::settled(std::size_t b) {
  if (!lossy_) return;
  const ArenaRange range = layout_.buckets[b];
  const double squares = host_vector_ops().sum_squares(DType::f32, residual_at(range), index(range.elems()));
  const std::lock_guard lock(mutex_);
  tally_.set_residual(b, squares);
}

std::size_t AsyncCodec::push(int b, int server, void* values, std::byte* wire) {
  const Push& push = pushes_[index(b)];
  const ArenaRange range = place(b, server);
  std::vector<float> before;
  if (lossy_ && !push.counts) before.assign(residual_at(range), residual_at(range) + range.elems());
  if (lossy_ && !feedback_) std::fill_n(residual_at(range), range.elems(), 0.0f);
  push.form->begin_step(key("codec", push.step, layout_.rank, b));
  const std::size_t bytes = push.form->encode(values, part(b, server), false, wire);
  std::copy(before.begin(), before.end(), residual_.begin() + range.begin);
  count(*push.form);
  return bytes;
}

void AsyncCodec::keep_to_itself(int b, void* values) {
  Push& push = pushes_[index(b)];
  if (push.kept_own || !push.counts) return;
  push.kept_own = true;
  const ArenaRange range = place(b, layout_.rank);
  host_vector_ops().add(DType::f32, values, residual_at(range), index(range.elems()));
  host_vector_ops().fill(DType::f32, residual_at(range), 0, index(range.elems()));
}

// Running statistics are in a message as they are, where a codec is lossy.
void AsyncCodec::put_difference(ArenaRange range, std::byte* values, const std::byte* copy) const {
  if (!lossy_) return flip(values, copy, index(range.elems()) * size_of(layout_.dtype));
  runs_.each(range, [&](ArenaRange run, bool statistic) {
    const std::size_t at = index(run.begin - range.begin) * sizeof(float);
    if (!statistic) host_vector_ops().axpy(DType::f32, values + at, -1, copy + at, index(run.elems()));
  });
}

void AsyncCodec::follow(ArenaRange range, void* weights, const std::byte* change) const {
  auto* to = static_cast<std::byte*>(weights);
  if (!lossy_) return flip(to, change, index(range.elems()) * size_of(layout_.dtype));
  runs_.each(range, [&](ArenaRange run, bool statistic) {
    const std::size_t at = index(run.begin - range.begin) * sizeof(float), n = index(run.elems());
    statistic ? host_vector_ops().copy(DType::f32, to + at, change + at, n)
              : host_vector_ops().add(DType::f32, to + at, change + at, n);
  });
}

void AsyncCodec::take(int b, int server, Payload message, void* weights) {
  const ElemRange range = part(b, server);
  std::byte* change = scratch(range);
  pushes_[index(b)].form->decode(message.data(), message.size(), change, range);
  follow(place(b, server), weights, change);
}

void AsyncCodec::decode(int b, Payload message, void* values) {
  pushes_[index(b)].form->decode(message.data(), message.size(), values, part(b, layout_.rank));
}

std::size_t AsyncCodec::answer(int b, int worker, std::int64_t step, const void* weights, void* copy, std::byte* wire) {
  const ElemRange own = part(b, layout_.rank);
  const ArenaRange range = place(b, layout_.rank);
  std::byte* values = scratch(own);
  std::memcpy(values, weights, index(own.elems()) * size_of(layout_.dtype));
  put_difference(range, values, static_cast<const std::byte*>(copy));
  ServerForm& form = *answers_.at({b, worker});
  form.begin_step(key("codec of answers", step, worker, b));
  const std::size_t bytes = form.encode(values, own, true, wire);
  follow(range, copy, values);
  count(form);
  return bytes;
}

void AsyncCodec::release(std::size_t b, Device& device, void* values) {
  if (std::exchange(pushes_[b].kept_own, true)) return;
  release_residual(device, values, residual_at(layout_.buckets[b]), layout_.buckets[b].elems());
}

CodecRecord AsyncCodec::record() {
  const std::lock_guard lock(mutex_);
  return tally_.take(lossy_);
}

void AsyncCodec::visit_state(StateVisitor& visitor) {
  if (!lossy_) return;
  visit_residual(visitor, "residual", parameters_, residual_.data(), {layout_.rank, layout_.workers});
  std::vector<Codec*> codecs;
  for (int b = 0; b < static_cast<int>(layout_.buckets.size()); ++b) {
    for (ServerForm::Part& part : pushes_[index(b)].form->parts()) codecs.push_back(part.codec.get());
    for (int w = 0; w < layout_.workers; ++w) {
      const auto own = answers_.find({b, w});
      codecs.push_back(own == answers_.end() ? nullptr : own->second->parts().front().codec.get());
    }
  }
  visit_taus(visitor, "codec_tau" + layout_.part, codecs, {layout_.rank, layout_.ranks});
  if (visitor.loading() && !feedback_) std::fill(residual_.begin(), residual_.end(), 0.0f);
  for (Push& push : pushes_) push.kept_own = push.kept_own && !visitor.loading();
}

}  // namespace echelon::inline exchange
