// Values whose magnitude is at least tau are sent as +-tau; the rest, and what is beyond tau, stays in the residual
// (Strom: Scalable distributed DNN training using commodity GPU cloud computing, Interspeech 2015).
//
//   message   u32 number of places; f32 tau; u8 format (Rice parameter, 254 map, 255 raw); u8 1 where a value that is
//             inf or NaN follows; u16 0; [u32 place, f32 value of the first such]; the places, each with a bit for
//             minus
//   map       two bits a value instead of places, 1 plus, 2 minus: where that is shorter
//
// tau = 0 adapts: the first tau is the size that `density` of the values pass; after each step it is moved by the ratio
// of densities to the power 1/50, down by a twentieth at most: residuals gather just below tau, and larger changes of
// tau alternate between no messages and bursts. Where more than twice the target fraction is encoded, it rises by the
// root of half the ratio, at most to the double. The first inf or NaN is encoded as it is; the others as tau.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "comm/codec/lanes.hpp"
#include "comm/codec/place_codec.hpp"
#include "comm/codec/select.hpp"
#include "device/vector.hpp"

namespace echelon::inline comm {
namespace {

constexpr std::uint8_t kMap = 254, kRaw = 255;
constexpr std::int64_t kBlock = 4096, kAhead = 512;

struct Head {
  std::uint32_t count = 0;
  float tau = 0;
  std::uint8_t format = kRaw;
  std::uint8_t exception = 0;
  std::uint16_t none = 0;
};
struct Exception {
  std::uint32_t place = 0;
  float value = 0;
};

std::size_t map_bytes(std::int64_t elems) { return static_cast<std::size_t>((elems + 3) / 4); }

class Threshold final : public PlaceCodec<Threshold> {
  friend PlaceCodec<Threshold>;

 public:
  explicit Threshold(const CodecOptions& options)
      : PlaceCodec(options), adapts_(options.tau == 0), tau_(static_cast<float>(options.tau)) {}
  const CodecInfo& info() const override { return codec_info("threshold"); }
  bool exact_size() const override { return false; }
  std::size_t most_bytes(std::int64_t elems) const override {
    return sizeof(Head) + sizeof(Exception) + map_bytes(elems);
  }
  double tau() const override { return tau_; }
  void set_tau(double tau) override {
    if (adapts_) tau_ = static_cast<float>(tau);
  }

  std::size_t encode(const Encoding& range, std::byte* wire) override {
    if (adapts_ && tau_ == 0) begin(range);
    head_ = {.count = 0, .tau = tau_, .format = kRaw, .exception = 0, .none = 0};
    count_ = 0;
    if (tau_ > 0)
      encode_range(range);
    else
      encode_without_tau(range);
    density_ = static_cast<double>(count_) / static_cast<double>(range.elems);
    const std::size_t bytes = write(coding_, range.elems, wire);
    if (adapts_) adapt(largest_residual(range));
    return bytes;
  }

  std::size_t to_wire(const std::byte* raw, std::int64_t elems, double largest_residual, std::byte* wire) override {
    parse(raw, most_bytes(elems), elems);
    tau_ = head_.tau;
    density_ = static_cast<double>(count_) / static_cast<double>(elems);
    const std::size_t bytes = write(coding_, elems, wire);
    if (adapts_) adapt(largest_residual);
    return bytes;
  }

 private:
  IndexFormat format(std::uint8_t byte) const {
    if (byte == kRaw) return {.coding = IndexCoding::raw, .rice_bits = 0, .extra = true};
    return {.coding = coding_, .rice_bits = byte, .extra = true};
  }

  // Adds the residual to the values and chooses the first tau from the sums.
  void begin(const Encoding& range) {
    auto* values = static_cast<float*>(range.values);
    const auto n = static_cast<std::size_t>(range.elems);
    if (range.residual) {
      host_vector_ops().add(DType::f32, values, range.residual, n);
      std::memset(range.residual, 0, n * sizeof(float));
    }
    const std::uint32_t size = nth_magnitude(values, range.elems, chosen(range.elems));
    tau_ = size < kInfinityBits ? std::bit_cast<float>(size) : 0;
  }

  // One pass: values become the decoded values, the residual the encoding error, entries the indices with signs.
  void encode_range(const Encoding& range) {
    for (std::int64_t at = 0; at < range.elems; at += kBlock) {
      make_room(entries_, count_ + kBlock);
      const std::int64_t n = std::min(kBlock, range.elems - at);
      each_lanes(n, [&](std::int64_t i, std::int64_t lanes) { encode_lanes(range, at + i, lanes); });
    }
  }

  void encode_lanes(const Encoding& range, std::int64_t i, std::int64_t n) {
    float* values = static_cast<float*>(range.values) + i;
    float* residual = range.residual ? range.residual + i : nullptr;
    fetch_ahead(values, kAhead);
    __m256 wanted = load_lanes(values, n);
    if (residual) {
      fetch_ahead(residual, kAhead);
      wanted = _mm256_add_ps(wanted, load_lanes(residual, n));
    }
    const __m256i chosen = lanes_from(wanted, magnitude_bits(tau_));  // lanes past the end hold 0
    const __m256 sign = _mm256_and_ps(wanted, _mm256_set1_ps(-0.0f));
    const __m256 encoded = _mm256_and_ps(_mm256_castsi256_ps(chosen), _mm256_or_ps(sign, _mm256_set1_ps(tau_)));
    store_lanes(values, encoded, n);
    if (residual) store_lanes(residual, finite_or_zero(_mm256_sub_ps(wanted, encoded)), n);
    if (const unsigned mask = mask_of(chosen); mask != 0) {
      const __m256i place =
          _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(i)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
      const __m256i minus = _mm256_srli_epi32(_mm256_castps_si256(wanted), 31);
      const __m256i entry = _mm256_or_si256(_mm256_slli_epi32(place, 1), minus);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(entries_.data() + count_), to_front(entry, mask));
      count_ += static_cast<std::size_t>(std::popcount(mask));
      if (head_.exception == 0) note_exception(wanted, i, values);
    }
  }

  // The first value that is inf or NaN, as it is; stored before tau.
  void note_exception(__m256 wanted, std::int64_t i, float* values) {
    const unsigned mask = mask_of(lanes_from(wanted, kInfinityBits));
    if (mask == 0) return;
    const int lane = std::countr_zero(mask);
    alignas(32) float all[kLanes];
    _mm256_store_ps(all, wanted);
    head_.exception = 1;
    exception_ = {.place = static_cast<std::uint32_t>(i + lane), .value = all[lane]};
    values[lane] += all[lane];
  }

  // There is no tau yet: all were zeros, or most were inf or NaN. `begin` has added the residual.
  void encode_without_tau(const Encoding& range) {
    auto* values = static_cast<float*>(range.values);
    for (std::int64_t i = 0; i < range.elems && head_.exception == 0; ++i) {
      if (magnitude_bits(values[i]) < kInfinityBits) continue;
      head_.exception = 1;
      exception_ = {.place = static_cast<std::uint32_t>(i), .value = values[i]};
    }
    if (range.residual)
      each_lanes(range.elems, [&](std::int64_t i, std::int64_t n) {
        store_lanes(range.residual + i, finite_or_zero(load_lanes(values + i, n)), n);
      });
    std::memset(values, 0, static_cast<std::size_t>(range.elems) * sizeof(float));
    if (head_.exception) values[exception_.place] = exception_.value;
  }

  std::size_t write(IndexCoding coding, std::int64_t elems, std::byte* wire) {
    const std::span<const std::uint32_t> entries(entries_.data(), count_);
    IndexFormat as = format_for(coding, true, count_, elems);
    std::size_t bytes = bytes_of_indices(as, entries);
    if (bytes > 4 * count_) as = format(kRaw), bytes = 4 * count_;
    const bool map = bytes > map_bytes(elems);
    head_.count = static_cast<std::uint32_t>(count_);
    head_.format = map ? kMap : as.coding == IndexCoding::raw ? kRaw : as.rice_bits;
    std::memcpy(wire, &head_, sizeof head_);
    std::size_t at = sizeof head_;
    if (head_.exception) {
      std::memcpy(wire + at, &exception_, sizeof exception_);
      at += sizeof exception_;
    }
    if (!map) return at + write_indices(as, entries, wire + at);
    std::memset(wire + at, 0, map_bytes(elems));
    for (const std::uint32_t entry : entries)
      wire[at + (entry >> 3)] |= static_cast<std::byte>(((entry & 1) + 1) << (2 * ((entry >> 1) & 3)));
    return at + map_bytes(elems);
  }

  template <class Clear>
  void read(const std::byte* wire, std::size_t bytes, float* values, std::int64_t elems, Clear clearing) const {
    Head head;
    Exception exception;
    std::memcpy(&head, wire, sizeof head);
    std::size_t at = sizeof head;
    if (head.exception) {
      std::memcpy(&exception, wire + at, sizeof exception);
      at += sizeof exception;
      ECHELON_CHECK_LT(exception.place, static_cast<std::uint64_t>(elems), "a message of places is damaged");
    }
    if (head.format == kMap) {
      clearing.finish();
      read_map(wire + at, head.tau, values, elems);
    } else {
      IndexReader places(format(head.format), wire + at, bytes - at);
      for (std::uint32_t i = 0; i < head.count; ++i) {
        const std::uint32_t entry = places.next();
        ECHELON_CHECK_LT(entry >> 1, static_cast<std::uint64_t>(elems), "a message of places is damaged");
        clearing.reach(entry >> 1);
        values[entry >> 1] += (entry & 1) != 0 ? -head.tau : head.tau;
      }
      clearing.finish();
    }
    if (head.exception) values[exception.place] += exception.value;
  }

  static void read_map(const std::byte* map, float tau, float* values, std::int64_t elems) {
    for (std::int64_t i = 0; i < elems; ++i)
      if (const int code = map_code(map, i); code != 0) values[i] += code == 1 ? tau : -tau;
  }
  static int map_code(const std::byte* map, std::int64_t i) {
    return (static_cast<int>(map[i / 4]) >> (2 * (i & 3))) & 3;
  }

  // A message as head_, exception_ and entries_.
  void parse(const std::byte* wire, std::size_t bytes, std::int64_t elems) {
    std::memcpy(&head_, wire, sizeof head_);
    std::size_t at = sizeof head_;
    if (head_.exception) {
      std::memcpy(&exception_, wire + at, sizeof exception_);
      at += sizeof exception_;
      ECHELON_CHECK_LT(exception_.place, static_cast<std::uint64_t>(elems), "a message of places is damaged");
    }
    ECHELON_CHECK_LE(head_.count, static_cast<std::uint64_t>(elems), "a message of places is damaged");
    make_room(entries_, static_cast<std::size_t>(elems));
    count_ = 0;
    if (head_.format == kMap) {
      for (std::int64_t i = 0; i < elems; ++i)
        if (const int code = map_code(wire + at, i); code != 0)
          entries_[count_++] = static_cast<std::uint32_t>(i) << 1 | (code == 2 ? 1u : 0u);
      return;
    }
    IndexReader places(format(head_.format), wire + at, bytes - at);
    while (count_ < head_.count) {
      const std::uint32_t entry = entries_[count_++] = places.next();
      ECHELON_CHECK_LT(entry >> 1, static_cast<std::uint64_t>(elems), "a message of places is damaged");
    }
  }

  // The largest size in the residual: used where nothing was encoded.
  double largest_residual(const Encoding& range) const {
    if (density_ > 0 || !range.residual) return INFINITY;
    return host_vector_ops().max_abs(DType::f32, range.residual, static_cast<std::size_t>(range.elems));
  }

  void adapt(double largest_residual) {
    if (tau_ == 0) return;                                     // all zeros so far
    if (density_ == 0 && largest_residual < tau_ / 2) return;  // a smaller tau would select nothing soon
    const double ratio = density_ / aim_;
    const double factor = ratio > 2 ? std::min(std::sqrt(ratio / 2), 2.0) : std::max(std::pow(ratio, 0.02), 0.95);
    tau_ = std::clamp(static_cast<float>(tau_ * factor), FLT_MIN, FLT_MAX);
  }

  bool adapts_;
  float tau_;
  Head head_;
  Exception exception_;
  std::vector<std::uint32_t> entries_;  // of which the first `count_` are encoded
  std::size_t count_ = 0;
};

}  // namespace

std::unique_ptr<Codec> make_threshold_codec(const CodecOptions& options) {
  return std::make_unique<Threshold>(options);
}

}  // namespace echelon::inline comm
