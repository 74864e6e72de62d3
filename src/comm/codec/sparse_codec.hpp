// SPDX-License-Identifier: Apache-2.0
// Base of top-k and threshold, which send few values with their indices. Decoding costs O(values sent), plus one pass
// in `decode` that sets the other values to zero. `Body`, which derives from this class, has
//   read(wire, bytes, values, elems, clearing)   adds the values of a message; `clearing` zeroes those between them
//   parse(wire, bytes, elems)                    reads a message into members; a check fails if it is damaged
//   write(coding, elems, wire) -> bytes          writes the message of those members
#pragma once

#include <algorithm>
#include <cmath>

#include "comm/codec/clearing.hpp"
#include "comm/codec/codec.hpp"
#include "comm/codec/indices.hpp"

namespace echelon::inline comm {

template <class Body>
class SparseCodec : public Codec {
 public:
  double density() const final { return density_; }
  // ceil(density * elems), at least 1, at most elems.
  std::int64_t chosen(std::int64_t elems) const final {
    if (elems == 0) return 0;
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(aim_ * static_cast<double>(elems))), 1, elems);
  }
  // Returns the expected bytes of a message: `head`, and for each index its code (or 32 bits) and `more_bytes`.
  double expected_bytes(std::size_t head, bool extra, double more_bytes, std::int64_t elems) const {
    const auto count = static_cast<double>(chosen(elems));
    const IndexFormat format = format_for(coding_, extra, static_cast<std::size_t>(chosen(elems)), elems);
    const double bits = expected_bits(format, count / static_cast<double>(elems));
    return static_cast<double>(head) + count * (std::min(bits, 32.0) / 8 + more_bytes);
  }
  std::size_t from_wire(const std::byte* wire, std::size_t bytes, std::int64_t elems, std::byte* raw) final {
    body().parse(wire, bytes, elems);
    return body().write(IndexCoding::raw, elems, raw);
  }
  void decode(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) final {
    auto* to = static_cast<float*>(values);
    body().read(wire, bytes, to, elems, Clearing(to, elems));
  }
  void decode_add(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) final {
    body().read(wire, bytes, static_cast<float*>(values), elems, NoClearing());
  }

 protected:
  explicit SparseCodec(const CodecOptions& options)
      : aim_(options.density), coding_(index_coding_of(options.index_coding)) {}

  double aim_;  // fraction of the values to send
  IndexCoding coding_;
  double density_ = 1;  // fraction sent in the newest message

 private:
  Body& body() { return static_cast<Body&>(*this); }
};

}  // namespace echelon::inline comm
