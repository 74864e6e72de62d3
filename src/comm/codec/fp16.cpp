// SPDX-License-Identifier: Apache-2.0
// IEEE halves: 11 bits of mantissa, 6e-5 to 65504 (6e-8 without full precision). Values are divided by a power of two
// that depends on the number of terms k, so that a sum overflows only if one of its terms would. Larger values become
// inf; inf and NaN are kept.
#include <bit>

#include "comm/codec/cast.hpp"

namespace echelon::inline comm {
namespace {

class Fp16 {
 public:
  explicit Fp16(int ranks) : up_(static_cast<float>(std::bit_ceil(static_cast<unsigned>(ranks)))), down_(1 / up_) {}
  static const CodecInfo& info() { return codec_info("fp16"); }
  __m128i pack(__m256 values) const {
    return _mm256_cvtps_ph(_mm256_mul_ps(values, _mm256_set1_ps(down_)), _MM_FROUND_TO_NEAREST_INT);
  }
  __m256 unpack(__m128i halves) const { return _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(up_)); }

 private:
  float up_, down_;
};

}  // namespace

std::unique_ptr<Codec> make_fp16_codec(const CodecOptions& options) {
  return std::make_unique<CastCodec<Fp16>>(Fp16(options.ranks));
}

}  // namespace echelon::inline comm
