#include "exchange/asynchronous/memory.hpp"

#include <cstring>

#include "base/check.hpp"
#include "device/vector.hpp"

namespace echelon::inline exchange {

AsyncBuffers::AsyncBuffers(int rank, std::vector<ArenaRange> buckets, std::vector<Parts> parts, std::int64_t elems,
                           DType dtype, bool adds_up)
    : rank_(rank), buckets_(std::move(buckets)), parts_(std::move(parts)), dtype_(dtype) {
  pulled_.resize(bytes_of(elems));
  served_.resize(bytes_of(elems));
  if (adds_up) sum_.resize(bytes_of(elems));
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b)
    for (int peer = 0; peer < static_cast<int>(parts_[static_cast<std::size_t>(b)].size()); ++peer) {
      const std::size_t theirs = sizeof(AsyncHeader) + bytes_of(part(b, peer).elems());
      updates_[{b, peer}].resize(theirs);
      arriving_[{b, peer}].resize(theirs);
      asked_[{b, peer}].resize(sizeof(AsyncHeader) + bytes_of(part(b, rank_).elems()));
    }
}

void AsyncBuffers::begin(const void* weights) {
  std::memcpy(pulled_.data(), weights, pulled_.size());
  served_ = pulled_;
}

ArenaRange AsyncBuffers::place(int b, int server) const {
  const std::int64_t begin = buckets_[static_cast<std::size_t>(b)].begin;
  return {begin + part(b, server).begin, begin + part(b, server).end};
}

void AsyncBuffers::add(void* to, const void* from, double factor, std::int64_t elems) const {
  const auto n = static_cast<std::size_t>(elems);
  if (factor == 1)
    host_vector_ops().add(dtype_, to, from, n);
  else
    host_vector_ops().axpy(dtype_, to, factor, from, n);
}

void AsyncBuffers::set_update(std::size_t b, const void* weights, double scale) {
  const int bucket = static_cast<int>(b);
  for (int server = 0; server < static_cast<int>(parts_[b].size()); ++server) {
    const ElemRange own = part(bucket, server);
    if (own.empty()) continue;
    const auto n = static_cast<std::size_t>(own.elems());
    std::byte* update = updates_.at({bucket, server}).data() + sizeof(AsyncHeader);
    host_vector_ops().copy(dtype_, update, static_cast<const std::byte*>(weights) + bytes_of(own.begin), n);
    host_vector_ops().axpy(dtype_, update, -1, at(pulled_, place(bucket, server).begin), n);
    if (scale != 1) host_vector_ops().scale(dtype_, update, scale, n);
  }
}

AsyncMemory::Message AsyncBuffers::push(int b, int server) {
  std::vector<std::byte>& bytes = updates_.at({b, server});
  return {.data = bytes.data(), .bytes = bytes.size()};
}

AsyncMemory::Room AsyncBuffers::answer_room(int b, int server) {
  std::vector<std::byte>& bytes = arriving_.at({b, server});
  return {bytes.data(), bytes.size()};
}

void AsyncBuffers::take(int b, int server, const AsyncHeader&, Payload weights) {
  const ArenaRange to = place(b, server);
  ECHELON_CHECK_EQ(weights.size(), bytes_of(to.elems()), "weights of rank {} for bucket {}", server, b);
  std::memcpy(at(pulled_, to.begin), weights.data(), weights.size());
}

AsyncMemory::Room AsyncBuffers::push_room(int b, int worker) {
  std::vector<std::byte>& bytes = asked_.at({b, worker});
  return {bytes.data(), bytes.size()};
}

void AsyncBuffers::apply(int b, int worker, const AsyncUpdate& update, const AsyncHeader&, Payload payload) {
  const ArenaRange own = place(b, rank_);
  ECHELON_CHECK_EQ(payload.size(), bytes_of(own.elems()), "update of worker {} for bucket {}", worker, b);
  if (sum_.empty()) return add(at(served_, own.begin), payload.data(), update.factor, own.elems());
  add(at(sum_, own.begin), payload.data(), update.factor, own.elems());
  if (update.new_version) flush(b);
}

void AsyncBuffers::flush(int b) {
  const ArenaRange own = place(b, rank_);
  add(at(served_, own.begin), at(sum_, own.begin), 1, own.elems());
  std::memset(at(sum_, own.begin), 0, bytes_of(own.elems()));
}

AsyncMemory::Message AsyncBuffers::answer(int b, int worker) {
  const ArenaRange own = place(b, rank_);
  std::vector<std::byte>& bytes = asked_.at({b, worker});
  std::memcpy(bytes.data() + sizeof(AsyncHeader), at(served_, own.begin), bytes_of(own.elems()));
  return {.data = bytes.data(), .bytes = bytes.size()};
}

}  // namespace echelon::inline exchange
