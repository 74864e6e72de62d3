// The very bits in fewer bytes: byte planes (all first bytes, all second bytes, ..), each through LZ4. Signs and
// exponents of gradients repeat themselves, and zeros do; mantissas do not: a fifth less on LeNet.
//
//   message   as many bytes as the values have: the values. Fewer: for each plane u32 its length, then the planes; one
//   of
//             full length is stored as it is
#include <immintrin.h>
#include <lz4.h>

#include <climits>
#include <cstring>

#include "base/check.hpp"
#include "comm/codec/codec.hpp"
#include "device/vector.hpp"

namespace echelon {
namespace {

constexpr std::int64_t kLeast = 64;  // values: below, heads eat what is won

// planes[p * n + i] = byte p of value i.
void split_planes(const std::byte* values, std::byte* planes, std::size_t n, std::size_t width) {
  std::size_t i = 0;
  if (width == 4) {
    const __m128i group = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (; i + 16 <= n; i += 16) {
      __m128i rows[4];
      for (std::size_t r = 0; r < 4; ++r)
        rows[r] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values + 4 * i + 16 * r)), group);
      const __m128i low01 = _mm_unpacklo_epi32(rows[0], rows[1]), low23 = _mm_unpacklo_epi32(rows[2], rows[3]);
      const __m128i high01 = _mm_unpackhi_epi32(rows[0], rows[1]), high23 = _mm_unpackhi_epi32(rows[2], rows[3]);
      const __m128i out[4] = {_mm_unpacklo_epi64(low01, low23), _mm_unpackhi_epi64(low01, low23),
                              _mm_unpacklo_epi64(high01, high23), _mm_unpackhi_epi64(high01, high23)};
      for (std::size_t p = 0; p < 4; ++p) _mm_storeu_si128(reinterpret_cast<__m128i*>(planes + p * n + i), out[p]);
    }
  }
  for (; i < n; ++i)
    for (std::size_t p = 0; p < width; ++p) planes[p * n + i] = values[i * width + p];
}

void join_planes(const std::byte* planes, std::byte* values, std::size_t n, std::size_t width) {
  std::size_t i = 0;
  if (width == 4) {
    for (; i + 16 <= n; i += 16) {
      __m128i in[4];
      for (std::size_t p = 0; p < 4; ++p) in[p] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(planes + p * n + i));
      const __m128i low01 = _mm_unpacklo_epi8(in[0], in[1]), high01 = _mm_unpackhi_epi8(in[0], in[1]);
      const __m128i low23 = _mm_unpacklo_epi8(in[2], in[3]), high23 = _mm_unpackhi_epi8(in[2], in[3]);
      const __m128i out[4] = {_mm_unpacklo_epi16(low01, low23), _mm_unpackhi_epi16(low01, low23),
                              _mm_unpacklo_epi16(high01, high23), _mm_unpackhi_epi16(high01, high23)};
      for (std::size_t r = 0; r < 4; ++r) _mm_storeu_si128(reinterpret_cast<__m128i*>(values + 4 * i + 16 * r), out[r]);
    }
  }
  for (; i < n; ++i)
    for (std::size_t p = 0; p < width; ++p) values[i * width + p] = planes[p * n + i];
}

class Lossless final : public Codec {
 public:
  explicit Lossless(const CodecOptions& options) : dtype_(options.dtype), width_(size_of(options.dtype)) {}
  const CodecInfo& info() const override { return lossless_codec_info(); }
  std::size_t value_bytes() const override { return width_; }
  std::size_t most_bytes(std::int64_t elems) const override { return width_ * static_cast<std::size_t>(elems); }
  bool exact_size() const override { return false; }

  std::size_t encode(const Encoding& range, std::byte* wire) override {
    const std::size_t plain = most_bytes(range.elems);
    const std::size_t bytes = range.elems < kLeast ? 0 : pack(range, wire, plain);
    if (bytes > 0) return bytes;
    std::memcpy(wire, range.values, plain);
    return plain;
  }

  void decode(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) override {
    if (bytes == most_bytes(elems)) {
      std::memcpy(values, wire, bytes);
      return;
    }
    const auto n = static_cast<std::size_t>(elems);
    planes_.resize(width_ * n);
    std::size_t at = width_ * sizeof(std::uint32_t);
    for (std::size_t p = 0; p < width_; ++p) {
      std::uint32_t length = 0;
      std::memcpy(&length, wire + p * sizeof length, sizeof length);
      ECHELON_CHECK(at + length <= bytes, "a message of planes is damaged");
      if (length == n)
        std::memcpy(planes_.data() + p * n, wire + at, n);
      else
        ECHELON_CHECK_EQ(LZ4_decompress_safe(reinterpret_cast<const char*>(wire + at),
                                             reinterpret_cast<char*>(planes_.data() + p * n), static_cast<int>(length),
                                             static_cast<int>(n)),
                         static_cast<int>(n), "a message of planes is damaged");
      at += length;
    }
    join_planes(planes_.data(), static_cast<std::byte*>(values), n, width_);
  }

  void decode_add(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) override {
    const auto n = static_cast<std::size_t>(elems);
    if (bytes == most_bytes(elems)) return host_vector_ops().add(dtype_, values, wire, n);
    decoded_.resize(width_ * n);
    decode(wire, bytes, decoded_.data(), elems);
    host_vector_ops().add(dtype_, values, decoded_.data(), n);
  }

 private:
  // 0 where it would not be shorter.
  std::size_t pack(const Encoding& range, std::byte* wire, std::size_t plain) {
    const auto n = static_cast<std::size_t>(range.elems);
    ECHELON_CHECK_LE(n, static_cast<std::size_t>(INT_MAX), "one message");
    planes_.resize(plain);
    split_planes(static_cast<const std::byte*>(range.values), planes_.data(), n, width_);
    std::size_t at = width_ * sizeof(std::uint32_t);
    for (std::size_t p = 0; p < width_; ++p) {
      const std::size_t room = plain - 1 - std::min(at, plain - 1);
      const auto* plane = reinterpret_cast<const char*>(planes_.data() + p * n);
      const int packed = LZ4_compress_default(plane, reinterpret_cast<char*>(wire + at), static_cast<int>(n),
                                              static_cast<int>(std::min(room, n - 1)));
      if (packed <= 0 && room < n) return 0;
      if (packed <= 0) std::memcpy(wire + at, plane, n);
      const auto length = packed > 0 ? static_cast<std::uint32_t>(packed) : static_cast<std::uint32_t>(n);
      std::memcpy(wire + p * sizeof length, &length, sizeof length);
      at += length;
    }
    return at;
  }

  DType dtype_;
  std::size_t width_;
  std::vector<std::byte> planes_;
  std::vector<std::byte> decoded_;  // apart: aligned for any type by its allocator
};

}  // namespace

const CodecInfo& lossless_codec_info() {
  static constexpr CodecInfo info{.name = "lossless", .route = CodecRoute::any, .lossy = false};
  return info;
}

std::unique_ptr<Codec> make_lossless_codec(const CodecOptions& options) { return std::make_unique<Lossless>(options); }

}  // namespace echelon
