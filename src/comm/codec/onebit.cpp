// SPDX-License-Identifier: Apache-2.0
// One bit per value, its sign, and for each row of a tensor the mean of the values of each sign (Seide et al.: 1-bit
// SGD, Interspeech 2014, whose columns are the rows here: the weights of one unit).
//
//   block   up to 2048 values of one row: f32 mean of the values >= 0, f32 mean of the others, then one bit per value,
//           1 for >= 0, in whole words of 32
//   run without rows   f32 each, uncompressed
//
// No block extends into the next row. NaN counts among the others. A value that is inf or NaN makes the mean of its
// sign inf or NaN, and with it all values of that sign in its block.
#include <bit>
#include <utility>

#include "base/check.hpp"
#include "comm/codec/codec.hpp"
#include "comm/codec/coded_rows.hpp"
#include "comm/codec/lanes.hpp"

namespace echelon::inline comm {
namespace {

constexpr std::int64_t kBlock = 2048, kWord = 32;

struct Means {
  float upper = 0, lower = 0;
};
constexpr std::int64_t kMeans = sizeof(Means), kSingle = sizeof(float);

constexpr std::int64_t block_bytes(std::int64_t n) { return kMeans + (n + kWord - 1) / kWord * (kWord / 8); }

// Decodes values i .. i + 7 of a block.
__m256 lanes(const Means& means, const std::byte* bits, std::int64_t i) {
  const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits[i / 8])), lane);
  return _mm256_blendv_ps(_mm256_set1_ps(means.lower), _mm256_set1_ps(means.upper),
                          _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lane)));
}

class OneBit final : public Codec {
 public:
  explicit OneBit(const CodecOptions& options) : rows_(options.rows) {
    for (const CodedRun& run : rows_) {
      ECHELON_CHECK(run.elems > 0 && (run.row == 0 || run.elems % run.row == 0), "{} values in rows of {}", run.elems,
                    run.row);
      elems_ += run.elems;
      bytes_ += onebit_bytes(run);
    }
  }
  const CodecInfo& info() const override { return codec_info("onebit"); }

  std::size_t most_bytes(std::int64_t elems) const override {
    if (rows_.empty()) return onebit_bytes({elems, elems});
    ECHELON_CHECK_EQ(elems, elems_, "values of a message whose rows are given");
    return bytes_;
  }

  std::size_t encode(const Encoding& range, std::byte* wire) override {
    auto* values = static_cast<float*>(range.values);
    each_block(range.elems, [&](const DeviceCodecBlock& block) {
      float* residual = range.residual ? range.residual + block.begin : nullptr;
      if (block.coded)
        encode_block(values + block.begin, residual, block.elems, wire + block.at);
      else
        put_singles(values + block.begin, residual, block.elems, wire + block.at);
    });
    return most_bytes(range.elems);
  }
  void decode(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) override {
    read(wire, bytes, static_cast<float*>(values), elems, [](__m256, __m256 encoded) { return encoded; });
  }
  void decode_add(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) override {
    read(wire, bytes, static_cast<float*>(values), elems,
         [](__m256 now, __m256 encoded) { return _mm256_add_ps(now, encoded); });
  }

  std::vector<DeviceCodecBlock> blocks(std::int64_t elems) const override {
    std::vector<DeviceCodecBlock> all;
    each_block(elems, [&](const DeviceCodecBlock& block) { all.push_back(block); });
    return all;
  }

 private:
  // Calls body(block) for each block, in rising order.
  template <class Body>
  void each_block(std::int64_t elems, Body&& body) const {
    DeviceCodecBlock block;
    const auto next = [&](std::int64_t n, bool coded) {
      block.elems = n;
      block.coded = coded;
      body(std::as_const(block));
      block.begin += n;
      block.at += coded ? block_bytes(n) : n * kSingle;
    };
    const auto each = [&](const CodedRun& run) {
      const std::int64_t row = run.row > 0 ? run.row : run.elems;
      for (std::int64_t left = run.elems; left > 0; left -= row)
        for (std::int64_t at = 0; at < row; at += kBlock) next(std::min(kBlock, row - at), run.row > 0);
    };
    if (rows_.empty()) return each({elems, elems});
    ECHELON_CHECK_EQ(elems, elems_, "values of a message whose rows are given");
    for (const CodedRun& run : rows_) each(run);
  }

  static void encode_block(float* values, float* residual, std::int64_t elems, std::byte* wire) {
    const Means means = split(values, residual, elems, wire + kMeans);
    std::memcpy(wire, &means, sizeof means);
    each_lanes(elems, [&](std::int64_t i, std::int64_t n) {
      fetch_ahead(values + i, kBlock);
      if (residual) fetch_ahead(residual + i, kBlock);
      const __m256 corrected = load_lanes(values + i, n), encoded = lanes(means, wire + kMeans, i);
      store_lanes(values + i, encoded, n);
      if (residual) store_lanes(residual + i, finite_or_zero(_mm256_sub_ps(corrected, encoded)), n);
    });
  }

  // Adds the residual and writes the bits. Sums are kept in eight lanes, index i in lane i mod 8, and the lanes are
  // added in a fixed tree.
  static Means split(float* values, const float* residual, std::int64_t elems, std::byte* bits) {
    __m256 upper = _mm256_setzero_ps(), lower = _mm256_setzero_ps();
    int uppers = 0;
    std::memset(bits + elems / 8, 0, static_cast<std::size_t>(block_bytes(elems) - kMeans - elems / 8));
    each_lanes(elems, [&](std::int64_t i, std::int64_t n) {
      __m256 corrected = load_lanes(values + i, n);
      if (residual) corrected = _mm256_add_ps(corrected, load_lanes(residual + i, n));
      store_lanes(values + i, corrected, n);
      const __m256 positive = _mm256_cmp_ps(corrected, _mm256_setzero_ps(), _CMP_GE_OQ);
      upper = _mm256_add_ps(upper, _mm256_and_ps(positive, corrected));
      lower = _mm256_add_ps(lower, _mm256_andnot_ps(positive, corrected));  // lanes past the end hold 0
      const int mask = _mm256_movemask_ps(positive) & ((1 << n) - 1);
      bits[i / 8] = static_cast<std::byte>(mask);
      uppers += std::popcount(static_cast<unsigned>(mask));
    });
    const auto lowers = static_cast<int>(elems) - uppers;
    return {.upper = uppers > 0 ? sum_lanes(upper) / static_cast<float>(uppers) : 0,
            .lower = lowers > 0 ? sum_lanes(lower) / static_cast<float>(lowers) : 0};
  }

  static void put_singles(float* values, float* residual, std::int64_t elems, std::byte* wire) {
    for (std::int64_t i = 0; residual && i < elems; ++i) values[i] += residual[i], residual[i] = 0;
    std::memcpy(wire, values, static_cast<std::size_t>(elems * kSingle));
  }

  template <class Combine>
  void read(const std::byte* wire, std::size_t bytes, float* values, std::int64_t elems, Combine&& combine) const {
    require_length(bytes, elems);
    each_block(elems, [&](const DeviceCodecBlock& block) {
      float* to = values + block.begin;
      const std::byte* from = wire + block.at;
      Means means;
      if (block.coded) std::memcpy(&means, from, sizeof means);
      each_lanes(block.elems, [&](std::int64_t i, std::int64_t n) {
        const __m256 encoded =
            block.coded ? lanes(means, from + kMeans, i) : load_lanes(reinterpret_cast<const float*>(from) + i, n);
        store_lanes(to + i, combine(load_lanes(to + i, n), encoded), n);
      });
    });
  }

  std::vector<CodedRun> rows_;
  std::int64_t elems_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

std::size_t onebit_bytes(const CodedRun& run) {
  if (run.row == 0) return static_cast<std::size_t>(run.elems * kSingle);
  const std::int64_t rest = run.row % kBlock;
  const std::int64_t row = run.row / kBlock * block_bytes(kBlock) + (rest > 0 ? block_bytes(rest) : 0);
  return static_cast<std::size_t>(run.elems / run.row * row);
}

std::unique_ptr<Codec> make_onebit_codec(const CodecOptions& options) { return std::make_unique<OneBit>(options); }

}  // namespace echelon::inline comm
