// SPDX-License-Identifier: Apache-2.0
// Common code of fp16 and bf16, which round every value to 16 bits. A message of n values has exactly 2 n bytes
// (exact_size()). Rounding is idempotent, so any plan can carry these messages (CodecRoute::any). The code is
// memory-bound; it uses AVX2 and F16C.
//
// `Half` provides
//   static const CodecInfo& info();
//   __m128i pack(__m256 values) const;      rounds to nearest, ties to even; NaN stays NaN
//   __m256 unpack(__m128i halves) const;
#pragma once

#include <cstring>

#include "base/vectors.hpp"
#include "comm/codec/codec.hpp"
#include "comm/codec/lanes.hpp"

namespace echelon::inline comm {

template <class Half>
class CastCodec final : public Codec {
 public:
  explicit CastCodec(const Half& half) : half_(half) {}
  const CodecInfo& info() const override { return Half::info(); }
  std::size_t most_bytes(std::int64_t elems) const override { return 2 * static_cast<std::size_t>(elems); }

  std::size_t encode(const Encoding& range, std::byte* wire) override {
    auto* values = static_cast<float*>(range.values);
    each_lanes(range.elems, [&](std::int64_t i, std::int64_t n) {
      const __m128i halves = round_lanes(values + i, range.residual ? range.residual + i : nullptr, n);
      store_halves(wire + 2 * i, halves, n);
    });
    return most_bytes(range.elems);
  }

  void round(void* values, std::int64_t elems, float* residual) override {
    auto* at = static_cast<float*>(values);
    each_lanes(elems,
               [&](std::int64_t i, std::int64_t n) { round_lanes(at + i, residual ? residual + i : nullptr, n); });
  }

  void decode(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) override {
    require_length(bytes, elems);
    auto* at = static_cast<float*>(values);
    each_lanes(elems, [&](std::int64_t i, std::int64_t n) {
      store_lanes(at + i, half_.unpack(load_halves(wire + 2 * i, n)), n);
    });
  }

  void decode_add(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) override {
    require_length(bytes, elems);
    auto* at = static_cast<float*>(values);
    each_lanes(elems, [&](std::int64_t i, std::int64_t n) {
      const __m256 encoded = half_.unpack(load_halves(wire + 2 * i, n));
      store_lanes(at + i, _mm256_add_ps(load_lanes(at + i, n), encoded), n);
    });
  }

 private:
  static constexpr std::int64_t kAhead = 512;

  // Sets values = rounded(values + residual) and residual = the error (0 where it is not finite); returns the halves.
  __m128i round_lanes(float* values, float* residual, std::int64_t n) {
    fetch_ahead(values, kAhead);
    if (residual) fetch_ahead(residual, kAhead);
    __m256 corrected = load_lanes(values, n);
    if (residual) corrected = _mm256_add_ps(corrected, load_lanes(residual, n));
    const __m128i halves = half_.pack(corrected);
    const __m256 encoded = half_.unpack(halves);
    store_lanes(values, encoded, n);
    if (residual) store_lanes(residual, finite_or_zero(_mm256_sub_ps(corrected, encoded)), n);
    return halves;
  }

  Half half_;
};

}  // namespace echelon::inline comm
