#include "exchange/asynchronous/memory.hpp"

#include <cstring>

#include "base/check.hpp"
#include "device/vector.hpp"

namespace echelon::inline exchange {
namespace {

// factor * (values - others), in one pass.
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

AsyncBuffers::AsyncBuffers(Layout layout, const ParameterSet& parameters, AsyncServed* served)
    : layout_(std::move(layout)), runs_(parameters), served_(served), rates_(layout_.buckets.size()) {
  if (works()) pulled_.resize(bytes_of(parameters.elems()));
  for (int b = 0; b < static_cast<int>(layout_.buckets.size()); ++b) {
    const int ranks = static_cast<int>(layout_.parts[static_cast<std::size_t>(b)].size());
    for (int server = 0; server < ranks && works(); ++server) {
      const std::size_t theirs = sizeof(AsyncHeader) + bytes_of(part(b, server).elems());
      updates_[{b, server}].resize(theirs);
      if (server != layout_.rank) arriving_[{b, server}].resize(theirs);
    }
    for (int w = 0; w < layout_.workers && served_; ++w)
      asked_[{b, w}].resize(sizeof(AsyncHeader) + bytes_of(part(b, layout_.rank).elems()));
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
  std::vector<std::byte>& bytes = updates_.at({b, server});
  return {.data = bytes.data(), .bytes = bytes.size(), .factor = rates_[static_cast<std::size_t>(b)]};
}

AsyncMemory::Room AsyncBuffers::answer_room(int b, int server) {
  std::vector<std::byte>& bytes = arriving_.at({b, server});
  return {bytes.data(), bytes.size()};
}

void AsyncBuffers::take(int b, int server, const AsyncHeader&, Payload weights) {
  const ElemRange own = part(b, server);
  ECHELON_CHECK_EQ(weights.size(), bytes_of(own.elems()), "weights of rank {} for bucket {}", server, b);
  const std::int64_t begin = layout_.buckets[static_cast<std::size_t>(b)].begin + own.begin;
  std::memcpy(at(pulled_, begin), weights.data(), weights.size());
}

AsyncMemory::Room AsyncBuffers::push_room(int b, int worker) {
  std::vector<std::byte>& bytes = asked_.at({b, worker});
  return {bytes.data(), bytes.size()};
}

void AsyncBuffers::apply(int b, int worker, const AsyncUpdate& update, const AsyncHeader& header, Payload payload) {
  ECHELON_CHECK_EQ(payload.size(), bytes_of(part(b, layout_.rank).elems()), "update of worker {} for bucket {}", worker,
                   b);
  // The memory of the message, which is this object's own until the worker is answered.
  Messages& from = worker == layout_.rank ? updates_ : asked_;
  std::byte* values = from.at({b, worker}).data() + sizeof(AsyncHeader);
  ECHELON_CHECK(values == payload.data(), "an update of worker {} lies elsewhere", worker);
  served_->apply(b, worker, update, header.factor, values);
}

AsyncMemory::Message AsyncBuffers::answer(int b, int worker) {
  std::vector<std::byte>& bytes = asked_.at({b, worker});
  const void* weights = served_->answer(b, worker);
  std::memcpy(bytes.data() + sizeof(AsyncHeader), weights, bytes.size() - sizeof(AsyncHeader));
  return {.data = bytes.data(), .bytes = bytes.size()};
}

}  // namespace echelon::inline exchange
