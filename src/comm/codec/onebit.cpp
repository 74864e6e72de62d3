// One bit a value: its sign; blocks of 2048 encode the mean of each side (Seide et al.: 1-bit SGD, Interspeech 2014).
//
//   block   f32 mean of the values >= 0, f32 mean of the others, then a bit a value: 1 for >= 0
//
// NaN counts among the others. A value that is inf or NaN makes the mean of its side so, and with it all of that side.
#include <bit>

#include "comm/codec/block_codec.hpp"
#include "comm/codec/lanes.hpp"

namespace echelon::inline comm {
namespace {

struct OneBitBlock {
  static constexpr std::int64_t kBlock = 2048;
  struct Head {  // means
    float upper = 0, lower = 0;
  };
  static std::size_t body_bytes(std::int64_t n) { return static_cast<std::size_t>((n + 7) / 8); }
  static __m256 lanes(const Head& means, const std::byte* body, std::int64_t i, std::int64_t) {
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(body[i / 8])), lane);
    return _mm256_blendv_ps(_mm256_set1_ps(means.lower), _mm256_set1_ps(means.upper),
                            _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lane)));
  }
};

constexpr std::int64_t kBlock = OneBitBlock::kBlock;
constexpr std::int64_t kMeans = sizeof(OneBitBlock::Head);
using Means = OneBitBlock::Head;

class OneBit final : public BlockCodec<OneBitBlock> {
 public:
  const CodecInfo& info() const override { return codec_info("onebit"); }
  std::size_t encode(const Encoding& range, std::byte* wire) override {
    auto* values = static_cast<float*>(range.values);
    for (std::int64_t at = 0; at < range.elems; at += kBlock) {
      const std::int64_t size = std::min(kBlock, range.elems - at);
      float* residual = range.residual ? range.residual + at : nullptr;
      const Means means = split(values + at, residual, size, wire + kMeans);
      std::memcpy(wire, &means, sizeof means);
      each_lanes(size, [&](std::int64_t i, std::int64_t n) {
        fetch_ahead(values + at + i, kBlock);
        if (residual) fetch_ahead(residual + i, kBlock);
        const __m256 wanted = load_lanes(values + at + i, n), encoded = OneBitBlock::lanes(means, wire + kMeans, i, n);
        store_lanes(values + at + i, encoded, n);
        if (residual) store_lanes(residual + i, finite_or_zero(_mm256_sub_ps(wanted, encoded)), n);
      });
      wire += kMeans + (size + 7) / 8;
    }
    return most_bytes(range.elems);
  }

 private:
  // Adds the residual, writes the bits. Sums lie in eight lanes, place i in lane i mod 8, and are added in a fixed
  // tree.
  static Means split(float* values, const float* residual, std::int64_t elems, std::byte* bits) {
    __m256 upper = _mm256_setzero_ps(), lower = _mm256_setzero_ps();
    int uppers = 0;
    each_lanes(elems, [&](std::int64_t i, std::int64_t n) {
      __m256 wanted = load_lanes(values + i, n);
      if (residual) wanted = _mm256_add_ps(wanted, load_lanes(residual + i, n));
      store_lanes(values + i, wanted, n);
      const __m256 positive = _mm256_cmp_ps(wanted, _mm256_setzero_ps(), _CMP_GE_OQ);
      upper = _mm256_add_ps(upper, _mm256_and_ps(positive, wanted));
      lower = _mm256_add_ps(lower, _mm256_andnot_ps(positive, wanted));  // lanes past the end hold 0
      const int mask = _mm256_movemask_ps(positive) & ((1 << n) - 1);
      bits[i / 8] = static_cast<std::byte>(mask);
      uppers += std::popcount(static_cast<unsigned>(mask));
    });
    const auto lowers = static_cast<int>(elems) - uppers;
    return {.upper = uppers > 0 ? sum_lanes(upper) / static_cast<float>(uppers) : 0,
            .lower = lowers > 0 ? sum_lanes(lower) / static_cast<float>(lowers) : 0};
  }
};

}  // namespace

std::unique_ptr<Codec> make_onebit_codec(const CodecOptions&) { return std::make_unique<OneBit>(); }

}  // namespace echelon::inline comm
