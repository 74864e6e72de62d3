// SPDX-License-Identifier: Apache-2.0
// Base of the codecs whose messages consist of blocks: each block has a head, followed by its values in fewer bits.
// exact_size() holds, and decoding checks the length only, because any bytes of the right length decode to some values.
// `Form` describes a block:
//   kBlock                              values of a full block, a multiple of eight; the last block may be shorter
//   Head                                trivially copyable; starts the block
//   body_bytes(n)                       length of the part behind the head, for n values
//   lanes(head, body, i, n) -> __m256   decodes values i .. i + n - 1 of a block; n <= 8, i is a multiple of 8
#pragma once

#include <algorithm>
#include <cstring>

#include "comm/codec/codec.hpp"
#include "comm/codec/lanes.hpp"

namespace echelon::inline comm {

template <class Form>
class BlockCodec : public Codec {
 public:
  std::size_t most_bytes(std::int64_t elems) const final {
    const std::int64_t blocks = (elems + Form::kBlock - 1) / Form::kBlock;
    return static_cast<std::size_t>(blocks) * sizeof(typename Form::Head) + Form::body_bytes(elems);
  }
  void decode(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) final {
    require_length(bytes, elems);
    read(wire, static_cast<float*>(values), elems, [](__m256, __m256 encoded) { return encoded; });
  }
  void decode_add(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) final {
    require_length(bytes, elems);
    read(wire, static_cast<float*>(values), elems,
         [](__m256 now, __m256 encoded) { return _mm256_add_ps(now, encoded); });
  }

 private:
  template <class Combine>
  static void read(const std::byte* wire, float* values, std::int64_t elems, Combine&& combine) {
    for (std::int64_t at = 0; at < elems; at += Form::kBlock) {
      const std::int64_t size = std::min(Form::kBlock, elems - at);
      typename Form::Head head;
      std::memcpy(&head, wire, sizeof head);
      wire += sizeof head;
      each_lanes(size, [&](std::int64_t i, std::int64_t n) {
        float* to = values + at + i;
        store_lanes(to, combine(load_lanes(to, n), Form::lanes(head, wire, i, n)), n);
      });
      wire += Form::body_bytes(size);
    }
  }
};

}  // namespace echelon::inline comm
