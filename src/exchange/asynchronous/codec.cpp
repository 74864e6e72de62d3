// SPDX-License-Identifier: Apache-2.0
#include "exchange/asynchronous/codec.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "device/vector.hpp"
#include "exchange/residual_state.hpp"

namespace echelon::inline exchange {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// XORs `bits` into `to`, both of the same length.
void flip(std::byte* to, const std::byte* bits, std::size_t bytes) {
#pragma omp simd
  for (std::size_t i = 0; i < bytes; ++i) to[i] ^= bits[i];
}

}  // namespace

AsyncCodec::AsyncCodec(const ExchangeConfig& config, const ParameterSet& parameters, Layout layout)
    : layout_(std::move(layout)), feedback_(config, parameters, layout_.buckets, layout_.seed), runs_(parameters) {
  for (int b = 0; b < static_cast<int>(layout_.buckets.size()); ++b) {
    const ArenaRange bucket = layout_.buckets[index(b)];
    const auto make = [&](const Parts& of, std::span<float> residual, bool pull) {
      return ServerForm::make(config, parameters, layout_.dtype, bucket, of, residual, pull);
    };
    pushes_.push_back({.form = make(layout_.parts[index(b)], feedback_.residual().on_host(bucket), false)});
    const ElemRange own = part(b, layout_.rank);
    for (int w = 0; w < layout_.workers && !own.empty(); ++w) answers_[{b, w}] = make({own}, {}, true);
  }
}

ArenaRange AsyncCodec::range_at(int b, int server) const {
  const std::int64_t begin = layout_.buckets[index(b)].begin;
  return {begin + part(b, server).begin, begin + part(b, server).end};
}

std::size_t AsyncCodec::most_bytes(int b, int server) const {
  return pushes_[index(b)].form->most_bytes(part(b, server));
}

double AsyncCodec::formula_bytes(int b, const AllreduceRequest& request) const {
  return feedback_.formula_bytes(coded_server_bytes(*pushes_[index(b)].form, request));
}

// Returns room for values of the arenas' dtype, valid until the next call.
std::byte* AsyncCodec::scratch(ElemRange range) {
  scratch_.resize(std::max(scratch_.size(), index(range.elems()) * size_of(layout_.dtype)));
  return scratch_.data();
}

void AsyncCodec::count(ServerForm& form) {
  const std::lock_guard lock(mutex_);
  feedback_.tally().add(form.take_encoded());
}

void AsyncCodec::before_push(std::size_t b, std::int64_t step, bool counts) {
  feedback_.begin_step(b, step);
  pushes_[b].counts = counts;
}

void AsyncCodec::settled(std::size_t b) {
  if (!lossy()) return;
  const double squares = feedback_.residual().squares(layout_.buckets[b]);
  const std::lock_guard lock(mutex_);
  feedback_.tally().set_residual(b, squares);
}

std::size_t AsyncCodec::push(int b, int server, void* values, std::byte* wire) {
  const Push& push = pushes_[index(b)];
  const ArenaRange range = range_at(b, server);
  const std::span<float> residual = feedback_.residual().on_host(range);
  std::vector<float> before;
  if (!push.counts) before.assign(residual.begin(), residual.end());
  if (feedback_.drops()) feedback_.residual().clear(range);
  push.form->begin_step(feedback_.key(index(b), step_of(b), layout_.rank));
  const std::size_t bytes = push.form->encode(values, part(b, server), false, wire);
  std::copy(before.begin(), before.end(), residual.begin());
  count(*push.form);
  return bytes;
}

void AsyncCodec::keep_to_itself(int b, void* values) {
  if (!pushes_[index(b)].counts || !feedback_.take_loaded(index(b))) return;
  const ArenaRange range = range_at(b, layout_.rank);
  const std::span<float> residual = feedback_.residual().on_host(range);
  host_vector_ops().add(DType::f32, values, residual.data(), residual.size());
  feedback_.residual().clear(range);
}

// Running statistics are uncoded in messages of a lossy codec, as values rather than differences.
void AsyncCodec::put_difference(ArenaRange range, std::byte* values, const std::byte* copy) const {
  if (!lossy()) return flip(values, copy, index(range.elems()) * size_of(layout_.dtype));
  runs_.each(range, [&](ArenaRange run, bool statistic) {
    const std::size_t at = index(run.begin - range.begin) * sizeof(float);
    if (!statistic) host_vector_ops().axpy(DType::f32, values + at, -1, copy + at, index(run.elems()));
  });
}

void AsyncCodec::follow(ArenaRange range, void* weights, const std::byte* change) const {
  auto* to = static_cast<std::byte*>(weights);
  if (!lossy()) return flip(to, change, index(range.elems()) * size_of(layout_.dtype));
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
  follow(range_at(b, server), weights, change);
}

void AsyncCodec::decode(int b, Payload message, void* values) {
  pushes_[index(b)].form->decode(message.data(), message.size(), values, part(b, layout_.rank));
}

std::size_t AsyncCodec::answer(int b, int worker, std::int64_t step, const void* weights, void* copy, std::byte* wire) {
  const ElemRange own = part(b, layout_.rank);
  const ArenaRange range = range_at(b, layout_.rank);
  std::byte* values = scratch(own);
  std::memcpy(values, weights, index(own.elems()) * size_of(layout_.dtype));
  put_difference(range, values, static_cast<const std::byte*>(copy));
  ServerForm& form = *answers_.at({b, worker});
  form.begin_step(feedback_.key(index(b), step, worker, "codec of answers"));
  const std::size_t bytes = form.encode(values, own, true, wire);
  follow(range, copy, values);
  count(form);
  return bytes;
}

void AsyncCodec::release(std::size_t b, Device& device, void* values) {
  if (feedback_.take_loaded(b)) feedback_.residual().release(device, values, layout_.buckets[b]);
}

CodecRecord AsyncCodec::record() {
  const std::lock_guard lock(mutex_);
  return feedback_.record();
}

void AsyncCodec::visit_state(StateVisitor& visitor) {
  if (!lossy()) return;
  feedback_.visit_state(visitor, {layout_.rank, layout_.workers});
  std::vector<Codec*> codecs;
  for (int b = 0; b < static_cast<int>(layout_.buckets.size()); ++b) {
    for (ServerForm::Part& part : pushes_[index(b)].form->parts()) codecs.push_back(part.codec.get());
    for (int w = 0; w < layout_.workers; ++w) {
      const auto own = answers_.find({b, w});
      codecs.push_back(own == answers_.end() ? nullptr : own->second->parts().front().codec.get());
    }
  }
  visit_taus(visitor, "codec_tau" + layout_.part, codecs, {layout_.rank, layout_.ranks});
}

}  // namespace echelon::inline exchange
