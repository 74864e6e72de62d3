// SPDX-License-Identifier: Apache-2.0
// The messages of a synchronous parameter server: plain gradients and weights in segments, or coded parts
// (exchange.codec), one message each (form.hpp).
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "exchange/server/codec.hpp"
#include "exchange/server/protocol.hpp"
#include "exchange/staging.hpp"

namespace echelon::inline exchange {

class ServerBuffers final : public ServerMemory {
 public:
  // `buckets` are ranges of the arenas; the references must outlive this object. `segment_elems` is the length of
  // uncoded messages.
  ServerBuffers(std::vector<ArenaRange> buckets, std::int64_t segment_elems, DType dtype, Staging& gradients,
                Staging& weights, ServerCodec& codec);

  std::int64_t piece_elems(int b) const override;
  Bytes push(int b, int server, ElemRange piece) override;
  Bytes push_room(int b, int worker, int slot, ElemRange piece) override;
  void add(int b, int worker, int slot, ElemRange piece, std::size_t bytes, bool replaces) override;
  Bytes pull(int b, ElemRange piece) override;
  Bytes pull_room(int b, int server, ElemRange piece) override;
  void take(int b, int server, ElemRange piece, std::size_t bytes) override;

 private:
  enum class Use : std::uint8_t { push, push_came, pull, pull_came };
  using Key = std::tuple<Use, int, int, int>;  // a buffer outside the arenas: its use, bucket, rank and slot

  std::size_t bytes_of(ElemRange piece) const { return static_cast<std::size_t>(piece.elems()) * size_of(dtype_); }
  void* gradient(int b, ElemRange piece) const;
  // The values that a pull carries: weights or their changes.
  void* pulled(int b, ElemRange piece) const;
  std::vector<std::byte>& buffer(const Key& key, std::size_t bytes);
  void give_back(const Key& key);

  std::vector<ArenaRange> buckets_;
  std::int64_t segment_elems_;
  DType dtype_;
  Staging& gradients_;
  Staging& weights_;
  ServerCodec& codec_;
  std::map<Key, std::vector<std::byte>> used_;
  std::vector<std::vector<std::byte>> free_;
};

}  // namespace echelon::inline exchange
