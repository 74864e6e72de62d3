// SPDX-License-Identifier: Apache-2.0
#include "exchange/server/buffers.hpp"

#include <cstring>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/spans.hpp"
#include "device/device.hpp"

namespace echelon::inline exchange {

ServerBuffers::ServerBuffers(std::vector<ArenaRange> buckets, std::int64_t segment_elems, DType dtype,
                             Staging& gradients, Staging& weights, ServerCodec& codec)
    : buckets_(std::move(buckets)),
      segment_elems_(segment_elems > 0 ? segment_elems : kDefaultSegment),
      dtype_(dtype),
      gradients_(gradients),
      weights_(weights),
      codec_(codec) {}

std::int64_t ServerBuffers::piece_elems(int b) const {
  return codec_.codes(static_cast<std::size_t>(b)) ? std::numeric_limits<std::int64_t>::max() : segment_elems_;
}

void* ServerBuffers::gradient(int b, ElemRange piece) const {
  return gradients_.at(buckets_[static_cast<std::size_t>(b)].begin + piece.begin);
}

void* ServerBuffers::pulled(int b, ElemRange piece) const {
  const std::int64_t at = buckets_[static_cast<std::size_t>(b)].begin + piece.begin;
  return codec_.sends_changes(static_cast<std::size_t>(b)) ? codec_.changes_at(at) : weights_.at(at);
}

// Returns a buffer of at least `bytes`, reusing a free one if it is long enough.
std::vector<std::byte>& ServerBuffers::buffer(const Key& key, std::size_t bytes) {
  std::vector<std::byte>& own = used_[key];
  if (own.size() >= bytes) return own;
  for (std::vector<std::byte>& other : free_)
    if (other.size() >= bytes) {
      std::swap(own, other);
      std::swap(other, free_.back());
      free_.pop_back();
      return own;
    }
  own.resize(bytes);
  return own;
}

void ServerBuffers::give_back(const Key& key) {
  const auto it = used_.find(key);
  free_.push_back(std::move(it->second));
  used_.erase(it);
}

ServerMemory::Bytes ServerBuffers::push(int b, int server, ElemRange piece) {
  if (!codec_.codes(static_cast<std::size_t>(b))) return {gradient(b, piece), bytes_of(piece)};
  ServerForm& form = *codec_.push_form(static_cast<std::size_t>(b));
  std::vector<std::byte>& wire = buffer({Use::push, b, server, 0}, form.most_bytes(piece));
  return {wire.data(), form.encode(gradient(b, piece), piece, false, wire.data())};
}

ServerMemory::Bytes ServerBuffers::push_room(int b, int worker, int slot, ElemRange piece) {
  const auto bucket = static_cast<std::size_t>(b);
  const std::size_t room = codec_.codes(bucket) ? codec_.push_form(bucket)->most_bytes(piece) : bytes_of(piece);
  return {buffer({Use::push_came, b, worker, slot}, room).data(), room};
}

void ServerBuffers::add(int b, int worker, int slot, ElemRange piece, std::size_t bytes, bool replaces) {
  const Key key{Use::push_came, b, worker, slot};
  const std::byte* wire = used_.at(key).data();
  void* sum = gradient(b, piece);
  if (codec_.codes(static_cast<std::size_t>(b))) {
    ServerForm& form = *codec_.push_form(static_cast<std::size_t>(b));
    replaces ? form.decode(wire, bytes, sum, piece) : form.decode_add(wire, bytes, sum, piece);
  } else {
    ECHELON_CHECK_EQ(bytes, bytes_of(piece), "bytes of a piece of bucket {} from rank {}", b, worker);
    const SpanScope span(SpanKind::sum, nullptr, worker);
    if (replaces)
      std::memcpy(sum, wire, bytes);
    else
      host_vector_ops().add(dtype_, sum, wire, static_cast<std::size_t>(piece.elems()));
  }
  give_back(key);
}

ServerMemory::Bytes ServerBuffers::pull(int b, ElemRange piece) {
  if (!codec_.codes(static_cast<std::size_t>(b))) return {pulled(b, piece), bytes_of(piece)};
  ServerForm& form = *codec_.pull_form(static_cast<std::size_t>(b));
  std::vector<std::byte>& wire = buffer({Use::pull, b, 0, 0}, form.most_bytes(piece));
  return {wire.data(), form.encode(pulled(b, piece), piece, true, wire.data())};
}

ServerMemory::Bytes ServerBuffers::pull_room(int b, int server, ElemRange piece) {
  const auto bucket = static_cast<std::size_t>(b);
  if (!codec_.codes(bucket)) return {pulled(b, piece), bytes_of(piece)};
  const std::size_t room = codec_.pull_form(bucket)->most_bytes(piece);
  return {buffer({Use::pull_came, b, server, 0}, room).data(), room};
}

void ServerBuffers::take(int b, int server, ElemRange piece, std::size_t bytes) {
  if (!codec_.codes(static_cast<std::size_t>(b))) {
    ECHELON_CHECK_EQ(bytes, bytes_of(piece), "bytes of a piece of bucket {} from rank {}", b, server);
    return;
  }
  const Key key{Use::pull_came, b, server, 0};
  codec_.pull_form(static_cast<std::size_t>(b))->decode(used_.at(key).data(), bytes, pulled(b, piece), piece);
  give_back(key);
}

}  // namespace echelon::inline exchange
