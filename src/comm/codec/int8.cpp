// Eight bits a value: blocks of 512 with one scale each, rounded stochastically (Alistarh et al.: QSGD, NIPS 2017), so
// that a value's mean over many draws is the value.
//
//   block   f32 scale = max|c| / 127, then one signed byte q a value: c is said to be q * scale
//   q = floor(c / scale + u), u in [0, 1) a hash of (key, place)
//
// A value that is inf or NaN makes its whole block NaN. A block whose scale would be no normal number says 0 and keeps
// everything.
#include <bit>
#include <cfloat>
#include <limits>

#include "comm/codec/codec.hpp"
#include "comm/codec/draws.hpp"
#include "comm/codec/lanes.hpp"

namespace echelon {
namespace {

constexpr std::int64_t kBlock = 512;

// Of the values and their residuals; the sums stay in `values`.
float largest(float* values, const float* residual, std::int64_t elems) {
  __m256i most = _mm256_setzero_si256();
  each_lanes(elems, [&](std::int64_t i, std::int64_t n) {
    __m256 wanted = load_lanes(values + i, n);
    if (residual) wanted = _mm256_add_ps(wanted, load_lanes(residual + i, n));
    store_lanes(values + i, wanted, n);
    most = _mm256_max_epi32(most, _mm256_castps_si256(magnitude(wanted)));  // as integers: NaN above inf above all
  });
  return std::bit_cast<float>(largest_lane(most));
}

float scale_of(float largest) {
  if (!(largest < std::numeric_limits<float>::infinity())) return std::numeric_limits<float>::quiet_NaN();
  const float scale = largest / 127;
  return scale < FLT_MIN ? 0 : scale;
}

__m256 read_bytes(const std::byte* at, std::int64_t n) {
  std::int64_t bytes = 0;
  std::memcpy(&bytes, at, static_cast<std::size_t>(n));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes)));
}

void write_bytes(std::byte* at, __m256i integers, std::int64_t n) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(integers), _mm256_extracti128_si256(integers, 1));
  const std::int64_t bytes = _mm_cvtsi128_si64(_mm_packs_epi16(words, words));
  std::memcpy(at, &bytes, static_cast<std::size_t>(n));
}

class Int8 final : public Codec {
 public:
  const CodecInfo& info() const override { return int8_codec_info(); }
  std::size_t most_bytes(std::int64_t elems) const override {
    return static_cast<std::size_t>(elems) + sizeof(float) * static_cast<std::size_t>((elems + kBlock - 1) / kBlock);
  }

  std::size_t encode(const Encoding& range, std::byte* wire) override {
    auto* values = static_cast<float*>(range.values);
    const Draws draws(range.key);
    for (std::int64_t at = 0; at < range.elems; at += kBlock) {
      const std::int64_t size = std::min(kBlock, range.elems - at);
      float* residual = range.residual ? range.residual + at : nullptr;
      const float scale = scale_of(largest(values + at, residual, size));
      std::memcpy(wire, &scale, sizeof scale);
      wire += sizeof scale;
      say(values + at, residual, size, scale, draws, range.first + at, wire);
      wire += size;
    }
    return most_bytes(range.elems);
  }

  void decode(const std::byte* wire, std::size_t, void* values, std::int64_t elems) override {
    read(wire, static_cast<float*>(values), elems, [](__m256, __m256 said) { return said; });
  }
  void decode_add(const std::byte* wire, std::size_t, void* values, std::int64_t elems) override {
    read(wire, static_cast<float*>(values), elems, [](__m256 now, __m256 said) { return _mm256_add_ps(now, said); });
  }

 private:
  static void say(float* values, float* residual, std::int64_t elems, float scale, const Draws& draws,
                  std::int64_t first, std::byte* wire) {
    const __m256 up = _mm256_set1_ps(scale), down = _mm256_set1_ps(scale > 0 ? 1 / scale : 0);
    const __m256 most = _mm256_set1_ps(127);
    each_lanes(elems, [&](std::int64_t i, std::int64_t n) {
      const __m256 wanted = load_lanes(values + i, n);
      const __m256 drawn = _mm256_add_ps(_mm256_mul_ps(wanted, down), draws.lanes(first + i));
      const __m256 whole = _mm256_min_ps(_mm256_floor_ps(drawn), most);
      write_bytes(wire + i, _mm256_cvttps_epi32(whole), n);
      const __m256 said = _mm256_mul_ps(read_bytes(wire + i, n), up);
      store_lanes(values + i, said, n);
      if (residual) store_lanes(residual + i, finite_or_zero(_mm256_sub_ps(wanted, said)), n);
    });
  }

  template <class Combine>
  static void read(const std::byte* wire, float* values, std::int64_t elems, Combine&& combine) {
    for (std::int64_t at = 0; at < elems; at += kBlock) {
      const std::int64_t size = std::min(kBlock, elems - at);
      float scale = 0;
      std::memcpy(&scale, wire, sizeof scale);
      wire += sizeof scale;
      each_lanes(size, [&](std::int64_t i, std::int64_t n) {
        float* to = values + at + i;
        store_lanes(to, combine(load_lanes(to, n), _mm256_mul_ps(read_bytes(wire + i, n), _mm256_set1_ps(scale))), n);
      });
      wire += size;
    }
  }
};

}  // namespace

const CodecInfo& int8_codec_info() {
  static constexpr CodecInfo info{.name = "int8", .route = CodecRoute::direct, .lossy = true};
  return info;
}

std::unique_ptr<Codec> make_int8_codec(const CodecOptions&) { return std::make_unique<Int8>(); }

}  // namespace echelon
