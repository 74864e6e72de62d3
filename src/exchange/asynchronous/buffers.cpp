// SPDX-License-Identifier: Apache-2.0
#include "exchange/asynchronous/buffers.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/spans.hpp"
#include "device/vector.hpp"

namespace echelon::inline exchange {
namespace {

// out = factor * (values - others), in one pass.
void scaled_difference(DType dtype, void* out, double factor, const void* values, const void* others, std::size_t n) {
  with_float(dtype, [&]<class T>(T) {
    T* to = static_cast<T*>(out);
    const auto *a = static_cast<const T*>(values), *b = static_cast<const T*>(others);
    const T scale = static_cast<T>(factor);
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) to[i] = scale * (a[i] - b[i]);
  });
}

const std::byte* offset(const void* data, std::size_t bytes) { return static_cast<const std::byte*>(data) + bytes; }

}  // namespace

// Returns the length of header and payload, coded or not.
std::size_t AsyncBuffers::longest(int b, int server) const {
  const std::size_t coded = codec_ ? codec_->most_bytes(b, server) : 0;
  return sizeof(AsyncHeader) + std::max(coded, bytes_of(part(b, server).elems()));
}

AsyncBuffers::AsyncBuffers(Layout layout, const ParameterSet& parameters, AsyncServed* served, AsyncCodec* codec)
    : layout_(std::move(layout)), runs_(parameters), served_(served), codec_(codec), rates_(layout_.buckets.size()) {
  if (works()) pulled_.resize(bytes_of(parameters.elems()));
  for (int b = 0; b < static_cast<int>(layout_.buckets.size()); ++b) {
    const int ranks = static_cast<int>(layout_.parts[static_cast<std::size_t>(b)].size());
    for (int server = 0; server < ranks && works(); ++server) {
      const ElemRange theirs = part(b, server);
      updates_[{b, server}].resize(sizeof(AsyncHeader) + bytes_of(theirs.elems()));
      if (server == layout_.rank || theirs.empty()) continue;
      arriving_[{b, server}].resize(longest(b, server));
      if (codec_) coded_[{b, server}].resize(longest(b, server));
    }
    if (!served_ || part(b, layout_.rank).empty()) continue;
    for (int w = 0; w < layout_.workers; ++w) asked_[{b, w}].resize(longest(b, layout_.rank));
    if (codec_) decoded_.resize(std::max(decoded_.size(), bytes_of(part(b, layout_.rank).elems())));
  }
}

void AsyncBuffers::begin(const void* weights) {
  if (works()) std::memcpy(pulled_.data(), weights, pulled_.size());
  if (served_) served_->begin(weights);
}

void AsyncBuffers::set_update(std::size_t b, const Update& update) {
  const int bucket = static_cast<int>(b);
  const std::int64_t begin = layout_.buckets[b].begin;
  rates_[b] = update.rate;
  if (codec_) codec_->before_push(b, update.step, !update.gradients || update.rate > 0);
  for (int server = 0; server < static_cast<int>(layout_.parts[b].size()); ++server) {
    const ElemRange own = part(bucket, server);
    if (own.empty()) continue;
    std::byte* message = updates_.at({bucket, server}).data() + sizeof(AsyncHeader);
    const auto put_change = [&](ArenaRange of) {
      scaled_difference(layout_.dtype, message + bytes_of(of.begin - begin - own.begin), update.share,
                        offset(update.weights, bytes_of(of.begin - begin)), at(pulled_, of.begin),
                        static_cast<std::size_t>(of.elems()));
    };
    const ArenaRange all{begin + own.begin, begin + own.end};
    if (!update.gradients) {
      put_change(all);
      continue;
    }
    runs_.each(all, [&](ArenaRange run, bool statistic) {
      if (statistic) return put_change(run);
      std::memcpy(message + bytes_of(run.begin - all.begin), offset(update.gradients, bytes_of(run.begin - begin)),
                  bytes_of(run.elems()));
    });
  }
}

AsyncMemory::Message AsyncBuffers::push(int b, int server) {
  std::vector<std::byte>& plain = updates_.at({b, server});
  std::byte* values = plain.data() + sizeof(AsyncHeader);
  Message message{.data = plain.data(), .bytes = plain.size(), .factor = rates_[static_cast<std::size_t>(b)]};
  if (codec_ && server == layout_.rank) codec_->keep_to_itself(b, values);
  if (!codec_ || server == layout_.rank || !codec_->codes(b)) return message;
  message.data = coded_.at({b, server}).data();
  message.bytes = sizeof(AsyncHeader) + codec_->push(b, server, values, message.data + sizeof(AsyncHeader));
  message.flags = coded_in(codec_->step_of(b));
  return message;
}

AsyncMemory::Room AsyncBuffers::answer_room(int b, int server) {
  std::vector<std::byte>& bytes = arriving_.at({b, server});
  return {bytes.data(), bytes.size()};
}

bool AsyncBuffers::is_coded(const AsyncHeader& header) const {
  const bool coded = (header.flags & kCoded) != 0;
  ECHELON_CHECK(!coded || codec_, "a coded message arrived, but this rank codes nothing");
  return coded;
}

void AsyncBuffers::take(int b, int server, const AsyncHeader& header, Payload weights) {
  const std::int64_t begin = range_at(b, server).begin;
  if (is_coded(header)) return codec_->take(b, server, weights, at(pulled_, begin));
  ECHELON_CHECK_EQ(weights.size(), bytes_of(part(b, server).elems()), "weights of rank {} for bucket {}", server, b);
  std::memcpy(at(pulled_, begin), weights.data(), weights.size());
}

AsyncMemory::Room AsyncBuffers::push_room(int b, int worker) {
  std::vector<std::byte>& bytes = asked_.at({b, worker});
  return {bytes.data(), bytes.size()};
}

void AsyncBuffers::apply(int b, int worker, const AsyncUpdate& update, const AsyncHeader& header, Payload payload) {
  if (SpanRecorder* spans = span_place.recorder) spans->worker_at(header.clock, now_s());
  if (is_coded(header)) {
    codec_->decode(b, payload, decoded_.data());
    return served_->apply(b, worker, update, header.factor, decoded_.data());
  }
  ECHELON_CHECK_EQ(payload.size(), bytes_of(part(b, layout_.rank).elems()), "update of worker {} for bucket {}", worker,
                   b);
  // The update may be changed in the message's memory, which nothing else uses until the worker is answered.
  Messages& from = worker == layout_.rank ? updates_ : asked_;
  std::byte* values = from.at({b, worker}).data() + sizeof(AsyncHeader);
  ECHELON_CHECK(values == payload.data(), "an update of worker {} lies elsewhere", worker);
  served_->apply(b, worker, update, header.factor, values);
}

AsyncMemory::Message AsyncBuffers::answer(int b, int worker, const AsyncHeader& asked) {
  std::byte* message = asked_.at({b, worker}).data();
  std::byte* payload = message + sizeof(AsyncHeader);
  if (is_coded(asked)) {
    std::size_t coded = 0;
    served_->code_answer(b, worker, [&](const void* weights, void* copy) {
      coded = codec_->answer(b, worker, asked.flags >> 1, weights, copy, payload);
    });
    return {.data = message, .bytes = sizeof(AsyncHeader) + coded, .flags = kCoded};
  }
  served_->answer(b, worker, payload);
  return {.data = message, .bytes = sizeof(AsyncHeader) + bytes_of(part(b, layout_.rank).elems())};
}

}  // namespace echelon::inline exchange
