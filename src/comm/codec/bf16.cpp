// SPDX-License-Identifier: Apache-2.0
// The upper half of an f32: 8 bits of mantissa, the range of f32. inf and NaN are kept; values within 2^-9 of the
// largest f32 become inf.
#include "comm/codec/cast.hpp"

namespace echelon::inline comm {
namespace {

class Bf16 {
 public:
  static const CodecInfo& info() { return codec_info("bf16"); }
  __m128i pack(__m256 values) const {
    const __m256i bits = _mm256_castps_si256(values);
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
    const __m256i words = _mm256_blendv_epi8(_mm256_srli_epi32(up, 16), quiet, nan);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0b1000);
    return _mm256_castsi256_si128(packed);
  }
  __m256 unpack(__m128i halves) const {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
};

}  // namespace

std::unique_ptr<Codec> make_bf16_codec(const CodecOptions&) { return std::make_unique<CastCodec<Bf16>>(Bf16()); }

}  // namespace echelon::inline comm
