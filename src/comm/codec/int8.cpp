// SPDX-License-Identifier: Apache-2.0
// Eight bits per value: blocks of 512 with one scale each, rounded stochastically (Alistarh et al.: QSGD, NIPS 2017),
// so that the mean over many draws is the value.
//
//   block   f32 scale = max|c| / 127, then one signed byte q per value: c is encoded as q * scale
//   q = floor((round(2^16 c / scale) + u) / 2^16), at most 127; u in 0 .. 2^16 - 1 is drawn by (key, index)
//
// A value that is inf or NaN makes its whole block NaN. A block whose scale is below 2^-110 is encoded as 0 and stays
// in the residual.
#include <bit>
#include <limits>

#include "comm/codec/block_codec.hpp"
#include "comm/codec/draws.hpp"
#include "comm/codec/lanes.hpp"

namespace echelon::inline comm {
namespace {

struct Int8Block {
  static constexpr std::int64_t kBlock = 512;
  using Head = float;  // the scale
  static std::size_t body_bytes(std::int64_t n) { return static_cast<std::size_t>(n); }
  static __m256 lanes(float scale, const std::byte* body, std::int64_t i, std::int64_t n) {
    std::int64_t bytes = 0;
    std::memcpy(&bytes, body + i, static_cast<std::size_t>(n));
    const __m256 q = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes)));
    return _mm256_mul_ps(q, _mm256_set1_ps(scale));
  }
};

constexpr std::int64_t kBlock = Int8Block::kBlock;
constexpr float kLeastScale = 0x1p-110f;  // so that 2^16 / scale is finite

// Returns the largest magnitude of a block's sums of values and residuals; the sums are stored in `values`.
float largest(float* values, const float* residual) {
  __m256i most = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < kBlock; i += kLanes) {
    __m256 corrected = _mm256_loadu_ps(values + i);
    if (residual) corrected = _mm256_add_ps(corrected, _mm256_loadu_ps(residual + i));
    _mm256_storeu_ps(values + i, corrected);
    most = _mm256_max_epi32(most, _mm256_castps_si256(magnitude(corrected)));  // as integers: NaN above inf above all
  }
  return std::bit_cast<float>(largest_lane(most));
}

float scale_of(float largest) {
  if (!(largest < std::numeric_limits<float>::infinity())) return std::numeric_limits<float>::quiet_NaN();
  const float scale = largest / 127;
  return scale < kLeastScale ? 0 : scale;
}

class Int8 final : public BlockCodec<Int8Block> {
 public:
  const CodecInfo& info() const override { return codec_info("int8"); }
  std::size_t encode(const Encoding& range, std::byte* wire) override {
    auto* values = static_cast<float*>(range.values);
    const Draws draws(range.key, range.first);
    std::int64_t at = 0;
    for (; at + kBlock <= range.elems; at += kBlock, wire += sizeof(float) + kBlock)
      encode_block(values + at, range.residual ? range.residual + at : nullptr, draws, at, wire);
    if (at < range.elems) encode_rest(range, draws, at, wire);
    return most_bytes(range.elems);
  }

 private:
  // Encodes a full block in two passes, the second from the cache: its scale, then its bytes.
  static void encode_block(float* values, float* residual, const Draws& draws, std::int64_t at, std::byte* wire) {
    const float scale = scale_of(largest(values, residual));
    std::memcpy(wire, &scale, sizeof scale);
    wire += sizeof scale;
    const __m256 up = _mm256_set1_ps(scale), down = _mm256_set1_ps(scale > 0 ? 0x1p16f / scale : 0);
    const __m256i most = _mm256_set1_epi32(127);
    for (std::int64_t i = 0; i < kBlock; i += 4 * kLanes) {
      const Draws::Sixteen first = draws.sixteen(at + i), second = draws.sixteen(at + i + 2 * kLanes);
      const __m256i drawn[4] = {first.low, first.high, second.low, second.high};
      __m256i q[4];
      for (std::int64_t v = 0; v < 4; ++v) {
        const std::int64_t index = i + v * kLanes;
        fetch_ahead(values + index, kBlock);
        if (residual) fetch_ahead(residual + index, kBlock);
        const __m256 corrected = _mm256_loadu_ps(values + index);
        const __m256i fine = _mm256_cvtps_epi32(_mm256_mul_ps(corrected, down));
        q[v] = _mm256_min_epi32(_mm256_srai_epi32(_mm256_add_epi32(fine, drawn[v]), 16), most);
        const __m256 encoded = _mm256_mul_ps(_mm256_cvtepi32_ps(q[v]), up);
        _mm256_storeu_ps(values + index, encoded);
        if (residual) _mm256_storeu_ps(residual + index, finite_or_zero(_mm256_sub_ps(corrected, encoded)));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(wire + i), bytes_of(q));
    }
  }

  // Encodes the last block, which is shorter than kBlock, padded with zeros, which change neither scale nor bytes.
  static void encode_rest(const Encoding& range, const Draws& draws, std::int64_t at, std::byte* wire) {
    float values[kBlock] = {}, residual[kBlock] = {};
    std::byte bytes[sizeof(float) + kBlock];
    const auto n = static_cast<std::size_t>(range.elems - at);
    float* to = static_cast<float*>(range.values) + at;
    std::memcpy(values, to, n * sizeof(float));
    if (range.residual) std::memcpy(residual, range.residual + at, n * sizeof(float));
    encode_block(values, residual, draws, at, bytes);
    std::memcpy(to, values, n * sizeof(float));
    if (range.residual) std::memcpy(range.residual + at, residual, n * sizeof(float));
    std::memcpy(wire, bytes, sizeof(float) + n);
  }
};

}  // namespace

std::unique_ptr<Codec> make_int8_codec(const CodecOptions&) { return std::make_unique<Int8>(); }

}  // namespace echelon::inline comm
