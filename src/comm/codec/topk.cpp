// SPDX-License-Identifier: Apache-2.0
// Sends the values of largest magnitude, unchanged; the others stay in the residual (Aji, Heafield: Sparse
// communication, EMNLP 2017). Of n values exactly m = ceil(density * n) are encoded; among equal values the first ones
// are. inf and NaN rank above every number.
//
//   message   u32 bits of a Rice parameter, or 255 for raw indices; the indices; from the next multiple of 4 their
//   values
//
// Indices are coded by index_coding, or raw if that is shorter.
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "comm/codec/lanes.hpp"
#include "comm/codec/select.hpp"
#include "comm/codec/sparse_codec.hpp"

namespace echelon::inline comm {
namespace {

constexpr std::size_t kHead = sizeof(std::uint32_t);
constexpr std::uint32_t kRaw = 255;
constexpr std::int64_t kBlock = 4096, kAhead = 512;
constexpr std::int64_t kLeastSample = 4096, kMostSample = 65536, kRun = 16;

std::size_t whole_words(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

class TopK final : public SparseCodec<TopK> {
  friend SparseCodec<TopK>;

 public:
  explicit TopK(const CodecOptions& options) : SparseCodec(options) {}
  const CodecInfo& info() const override { return codec_info("topk"); }
  bool exact_size() const override { return coding_ == IndexCoding::raw; }
  std::size_t most_bytes(std::int64_t elems) const override {
    return kHead + 8 * static_cast<std::size_t>(chosen(elems));
  }
  double typical_bytes(std::int64_t elems) const override { return expected_bytes(kHead, false, 4, elems); }
  double tau() const override { return tau_; }

  std::size_t encode(const Encoding& range, std::byte* wire) override {
    const std::int64_t m = chosen(range.elems);
    sift(range, m);
    const std::uint32_t least = nth_magnitude(encoded_.data(), count_, m);
    keep(range, least, m - count_above(encoded_.data(), count_, least));
    density_ = static_cast<double>(m) / static_cast<double>(range.elems);
    tau_ = std::bit_cast<float>(least);
    return write(coding_, range.elems, wire);
  }

  std::size_t to_wire(const std::byte* raw, std::int64_t elems, double, std::byte* wire) override {
    parse(raw, most_bytes(elems), elems);
    density_ = static_cast<double>(count_) / static_cast<double>(elems);
    std::uint32_t least = ~0u;
    for (std::int64_t i = 0; i < count_; ++i)
      least = std::min(least, magnitude_bits(encoded_[static_cast<std::size_t>(i)]));
    tau_ = std::bit_cast<float>(least);
    return write(coding_, elems, wire);
  }

 private:
  IndexFormat format(std::uint32_t head) const {
    if (head == kRaw) return {};
    return {.coding = coding_, .rice_bits = static_cast<std::uint8_t>(head), .extra = false};
  }

  // Collects candidates that include the m largest values.
  void sift(const Encoding& range, std::int64_t m) {
    pass(range, sampled_floor(range, m));
    if (count_ < m) pass(range, 0);  // the sampled floor was too high; the sum of values and residuals is unchanged
  }

  // Returns a size that probably somewhat more than m values reach, estimated from a sample of runs of 16 values at
  // equal distances: in the sample, the expected share of m plus three standard deviations reach it. 0: every value
  // does.
  std::uint32_t sampled_floor(const Encoding& range, std::int64_t m) {
    const std::int64_t size = std::clamp(range.elems / 64, kLeastSample, kMostSample);
    if (range.elems < 2 * size || !range.residual) return 0;
    const double part = static_cast<double>(m) * static_cast<double>(size) / static_cast<double>(range.elems);
    const auto rank = static_cast<std::int64_t>(std::ceil(part + 3 * std::sqrt(part) + 1));
    if (rank >= size) return 0;
    const std::int64_t runs = size / kRun, distance = range.elems / runs;
    const auto* values = static_cast<const float*>(range.values);
    make_room(encoded_, static_cast<std::size_t>(size));
    for (std::int64_t run = 0; run < runs; ++run)
      for (std::int64_t i = 0; i < kRun; ++i)
        encoded_[static_cast<std::size_t>(run * kRun + i)] =
            values[run * distance + i] + range.residual[run * distance + i];
    return std::min(nth_magnitude(encoded_.data(), size, rank), kInfinityBits);
  }

  // Makes one pass: candidates (magnitude >= `floor`) are encoded, all others stay in the residual.
  void pass(const Encoding& range, std::uint32_t floor) {
    count_ = 0;
    if (floor == 0) make_room_for(range.elems + kBlock);
    for (std::int64_t at = 0; at < range.elems; at += kBlock) {
      make_room_for(count_ + kBlock);
      const std::int64_t n = std::min(kBlock, range.elems - at);
      each_lanes(n, [&](std::int64_t i, std::int64_t lanes) { pass_lanes(range, floor, at + i, lanes); });
    }
  }

  void pass_lanes(const Encoding& range, std::uint32_t floor, std::int64_t i, std::int64_t n) {
    float* values = static_cast<float*>(range.values) + i;
    float* residual = range.residual ? range.residual + i : nullptr;
    fetch_ahead(values, kAhead);
    __m256 corrected = load_lanes(values, n);
    if (residual) {
      fetch_ahead(residual, kAhead);
      corrected = _mm256_add_ps(corrected, load_lanes(residual, n));
    }
    const __m256i candidates = floor > 0 ? lanes_from(corrected, floor) : _mm256_set1_epi32(-1);
    const __m256 encoded = _mm256_and_ps(_mm256_castsi256_ps(candidates), corrected);
    store_lanes(values, encoded, n);
    if (residual) store_lanes(residual, _mm256_andnot_ps(_mm256_castsi256_ps(candidates), corrected), n);
    const unsigned mask = mask_of(candidates) & ((1u << n) - 1);
    if (mask == 0) return;
    const __m256i index =
        _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(i)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(indices_.data() + count_), to_front(index, mask));
    _mm256_storeu_ps(encoded_.data() + count_, _mm256_castsi256_ps(to_front(_mm256_castps_si256(corrected), mask)));
    count_ += std::popcount(mask);
  }

  // Keeps the candidates that are larger than `least`, and the first `ties` of exactly this size; the others go into
  // the residual. inf and NaN that are not kept are dropped, since others were encoded.
  void keep(const Encoding& range, std::uint32_t least, std::int64_t ties) {
    auto* values = static_cast<float*>(range.values);
    std::size_t kept = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(count_); ++c) {
      const std::uint32_t index = indices_[c], size = magnitude_bits(encoded_[c]);
      const bool tie = size == least && ties > 0;
      if (size > least || tie) {
        ties -= tie ? 1 : 0;
        indices_[kept] = index << 1;
        encoded_[kept++] = encoded_[c];
        continue;
      }
      values[index] = 0;
      if (range.residual) range.residual[index] = size < kInfinityBits ? encoded_[c] : 0;
    }
    count_ = static_cast<std::int64_t>(kept);
  }

  std::size_t write(IndexCoding coding, std::int64_t elems, std::byte* wire) const {
    const std::span<const std::uint32_t> indices(indices_.data(), static_cast<std::size_t>(count_));
    IndexFormat as = format_for(coding, false, indices.size(), elems);
    if (bytes_of_indices(as, indices) > 4 * indices.size()) as = {};
    const std::uint32_t head = as.coding == IndexCoding::raw ? kRaw : as.rice_bits;
    std::memcpy(wire, &head, kHead);
    const std::size_t at = kHead + whole_words(write_indices(as, indices, wire + kHead));
    std::memcpy(wire + at, encoded_.data(), 4 * indices.size());
    return at + 4 * indices.size();
  }

  template <class Clear>
  void read(const std::byte* wire, std::size_t bytes, float* values, std::int64_t elems, Clear clearing) const {
    each_encoded(wire, bytes, elems, [&](std::uint32_t index, float value) {
      clearing.reach(index);
      values[index] += value;
    });
    clearing.finish();
  }

  void make_room_for(std::int64_t entries) {
    make_room(indices_, static_cast<std::size_t>(entries));
    make_room(encoded_, static_cast<std::size_t>(entries));
  }

  // Reads a message into indices_ and encoded_.
  void parse(const std::byte* wire, std::size_t bytes, std::int64_t elems) {
    count_ = 0;
    make_room_for(chosen(elems));
    each_encoded(wire, bytes, elems, [&](std::uint32_t index, float value) {
      const auto at = static_cast<std::size_t>(count_++);
      indices_[at] = index << 1;
      encoded_[at] = value;
    });
  }

  // Calls body(index, value) for every entry of a message.
  template <class Body>
  void each_encoded(const std::byte* wire, std::size_t bytes, std::int64_t elems, Body&& body) const {
    std::uint32_t head = 0;
    const auto m = static_cast<std::size_t>(chosen(elems));
    ECHELON_CHECK(bytes >= kHead + 4 * m, "a message of {} values has {} bytes", m, bytes);
    std::memcpy(&head, wire, kHead);
    ECHELON_CHECK(head != kRaw || bytes == kHead + 8 * m, "a message of {} values has {} bytes", m, bytes);
    const std::byte* encoded = wire + bytes - 4 * m;
    IndexReader indices(format(head), wire + kHead, bytes - 4 * m - kHead);
    for (std::size_t i = 0; i < m; ++i) {
      const std::uint32_t index = indices.next() >> 1;
      ECHELON_CHECK_LT(index, static_cast<std::uint64_t>(elems), "a sparse message is damaged");
      float value = 0;
      std::memcpy(&value, encoded + 4 * i, sizeof value);
      body(index, value);
    }
  }

  double tau_ = 0;
  std::vector<std::uint32_t> indices_;  // first `count_`: indices of candidates, then of the encoded entries
  std::vector<float> encoded_;          // values with their signs
  std::int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Codec> make_topk_codec(const CodecOptions& options) { return std::make_unique<TopK>(options); }

}  // namespace echelon::inline comm
