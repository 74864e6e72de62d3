// Values whose size passes tau are said to be +-tau; the rest, and what is beyond tau, is owed (Strom: Scalable
// distributed DNN training using commodity GPU cloud computing, Interspeech 2015).
//
//   message   u32 number of places; f32 tau; u8 format (Rice parameter, 254 map, 255 raw), u8 1 where a value that is
//   inf or
//             NaN follows, u16 0; [u32 place, f32 value of the first such]; the places, each with a bit for minus
//   map       two bits a value instead of places, 1 plus, 2 minus: where that is shorter
//
// tau = 0 adapts: the first tau is the size that `density` of the values pass; after each step it is moved by the ratio
// of densities to the power 1/50, down by a twentieth at most: what is owed gathers just below tau, and larger moves
// swing between silence and bursts. Where more than twice as much is said as is aimed at, it rises by the root of half
// the ratio, at most to the double. inf and NaN say themselves, the first of them; the others say tau.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "comm/codec/codec.hpp"
#include "comm/codec/lanes.hpp"
#include "comm/codec/places.hpp"
#include "comm/codec/select.hpp"
#include "device/vector.hpp"

namespace echelon {
namespace {

constexpr std::uint8_t kMap = 254, kRaw = 255;

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

class Threshold final : public Codec {
 public:
  explicit Threshold(const CodecOptions& options)
      : aim_(options.density),
        coding_(place_coding(options.index_coding)),
        adapts_(options.tau == 0),
        tau_(static_cast<float>(options.tau)) {}
  const CodecInfo& info() const override { return threshold_codec_info(); }
  bool exact_size() const override { return false; }
  std::size_t most_bytes(std::int64_t elems) const override {
    return sizeof(Head) + sizeof(Exception) + map_bytes(elems);
  }
  double density() const override { return density_; }
  double tau() const override { return tau_; }
  void set_tau(double tau) override {
    if (adapts_) tau_ = static_cast<float>(tau);
  }

  std::size_t encode(const Encoding& range, std::byte* wire) override {
    auto* values = static_cast<float*>(range.values);
    const auto n = static_cast<std::size_t>(range.elems);
    if (range.residual) host_vector_ops().add(DType::f32, values, range.residual, n);
    if (adapts_ && tau_ == 0) tau_ = first_tau(values, range.elems);
    head_ = {.count = 0, .tau = tau_, .format = kRaw, .exception = 0, .none = 0};
    if (tau_ > 0)
      places_from(values, range.elems, magnitude_bits(tau_), range.elems, entries_);
    else
      entries_.clear();
    say(range, values);
    density_ = static_cast<double>(entries_.size()) / static_cast<double>(n);
    const std::size_t bytes = write(range.elems, wire);
    if (adapts_) adapt(range);
    return bytes;
  }

  void decode(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) override {
    std::memset(values, 0, static_cast<std::size_t>(elems) * sizeof(float));
    decode_add(wire, bytes, values, elems);
  }

  void decode_add(const std::byte* wire, std::size_t bytes, void* into, std::int64_t elems) override {
    auto* values = static_cast<float*>(into);
    Head head;
    std::memcpy(&head, wire, sizeof head);
    std::size_t at = sizeof head;
    if (head.exception) {
      Exception exception;
      std::memcpy(&exception, wire + at, sizeof exception);
      at += sizeof exception;
      ECHELON_CHECK_LT(exception.place, static_cast<std::uint64_t>(elems), "a message of places is damaged");
      values[exception.place] += exception.value;
    }
    if (head.format == kMap) return read_map(wire + at, head.tau, values, elems);
    PlaceReader places(format(head.format), wire + at, bytes - at);
    for (std::uint32_t i = 0; i < head.count; ++i) {
      const std::uint32_t entry = places.next();
      ECHELON_CHECK_LT(entry >> 1, static_cast<std::uint64_t>(elems), "a message of places is damaged");
      values[entry >> 1] += (entry & 1) != 0 ? -head.tau : head.tau;
    }
  }

 private:
  PlaceFormat format(std::uint8_t byte) const {
    if (byte == kRaw) return {.coding = PlaceCoding::raw, .rice_bits = 0, .extra = true};
    return {.coding = coding_, .rice_bits = byte, .extra = true};
  }

  float first_tau(const float* values, std::int64_t elems) const {
    const auto m =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(aim_ * static_cast<double>(elems))), 1, elems);
    const std::uint32_t size = nth_magnitude(values, elems, m);
    return size < kInfinityBits ? std::bit_cast<float>(size) : 0;
  }

  // Places become entries (with signs), values what is said, the residual what is not.
  void say(const Encoding& range, float* values) {
    if (range.residual)
      each_lanes(range.elems, [&](std::int64_t i, std::int64_t n) {
        store_lanes(range.residual + i, finite_or_zero(load_lanes(values + i, n)), n);
      });
    find_exception(range.elems, values);
    said_.clear();
    for (std::uint32_t& entry : entries_) {
      const std::uint32_t place = entry;
      const bool minus = std::signbit(values[place]);
      const float said = minus ? -tau_ : tau_;
      if (range.residual && std::isfinite(values[place])) range.residual[place] = values[place] - said;
      entry = place << 1 | (minus ? 1u : 0u);
      said_.push_back(said);
    }
    std::memset(values, 0, static_cast<std::size_t>(range.elems) * sizeof(float));
    if (head_.exception) values[exception_.place] = exception_.value;
    for (std::size_t i = 0; i < entries_.size(); ++i) values[entries_[i] >> 1] += said_[i];
  }

  // Among the places: tau is finite. Without a tau yet, anywhere.
  void find_exception(std::int64_t elems, const float* values) {
    const auto note = [&](std::uint32_t place) {
      if (magnitude_bits(values[place]) < kInfinityBits) return false;
      head_.exception = 1;
      exception_ = {.place = place, .value = values[place]};
      return true;
    };
    if (tau_ > 0) {
      for (const std::uint32_t place : entries_)
        if (note(place)) return;
    } else {
      for (std::int64_t i = 0; i < elems; ++i)
        if (note(static_cast<std::uint32_t>(i))) return;
    }
  }

  std::size_t write(std::int64_t elems, std::byte* wire) {
    PlaceFormat as = format_for(coding_, true, entries_.size(), elems);
    std::size_t bytes = bytes_of_places(as, entries_);
    if (bytes > 4 * entries_.size()) as = format(kRaw), bytes = 4 * entries_.size();
    const bool map = bytes > map_bytes(elems);
    head_.count = static_cast<std::uint32_t>(entries_.size());
    head_.format = map ? kMap : as.coding == PlaceCoding::raw ? kRaw : as.rice_bits;
    std::memcpy(wire, &head_, sizeof head_);
    std::size_t at = sizeof head_;
    if (head_.exception) {
      std::memcpy(wire + at, &exception_, sizeof exception_);
      at += sizeof exception_;
    }
    if (!map) return at + write_places(as, entries_, wire + at);
    std::memset(wire + at, 0, map_bytes(elems));
    for (const std::uint32_t entry : entries_)
      wire[at + (entry >> 3)] |= static_cast<std::byte>(((entry & 1) + 1) << (2 * ((entry >> 1) & 3)));
    return at + map_bytes(elems);
  }

  static void read_map(const std::byte* map, float tau, float* values, std::int64_t elems) {
    for (std::int64_t i = 0; i < elems; ++i) {
      const int code = (static_cast<int>(map[i / 4]) >> (2 * (i & 3))) & 3;
      if (code != 0) values[i] += code == 1 ? tau : -tau;
    }
  }

  void adapt(const Encoding& range) {
    if (tau_ == 0) return;  // all zeros so far
    if (density_ == 0 && range.residual) {
      const double most = host_vector_ops().max_abs(DType::f32, range.residual, static_cast<std::size_t>(range.elems));
      if (most < tau_ / 2) return;  // nothing that a smaller tau would find soon
    }
    const double ratio = density_ / aim_;
    const double factor = ratio > 2 ? std::min(std::sqrt(ratio / 2), 2.0) : std::max(std::pow(ratio, 0.02), 0.95);
    tau_ = std::clamp(static_cast<float>(tau_ * factor), FLT_MIN, FLT_MAX);
  }

  double aim_;
  PlaceCoding coding_;
  bool adapts_;
  float tau_;
  double density_ = 1;
  Head head_;
  Exception exception_;
  std::vector<std::uint32_t> entries_;
  std::vector<float> said_;
};

}  // namespace

const CodecInfo& threshold_codec_info() {
  static constexpr CodecInfo info{.name = "threshold", .route = CodecRoute::gather, .lossy = true};
  return info;
}

std::unique_ptr<Codec> make_threshold_codec(const CodecOptions& options) {
  return std::make_unique<Threshold>(options);
}

}  // namespace echelon
