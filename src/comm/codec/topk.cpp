// The largest values, as they are; the rest is owed (Aji, Heafield: Sparse communication, EMNLP 2017). Of n values
// exactly m = ceil(density * n) are said; among equals the first. inf and NaN are larger than every number: said first.
//
//   message   u32 bits of a Rice parameter, or 255 for raw places; the places; at the next multiple of 4 their m values
//
// Places are coded as index_coding says, or raw where that is shorter.
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

constexpr std::size_t kHead = sizeof(std::uint32_t);
constexpr std::uint32_t kRaw = 255;

std::size_t whole_words(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

class TopK final : public Codec {
 public:
  explicit TopK(const CodecOptions& options) : part_(options.density), coding_(place_coding(options.index_coding)) {}
  const CodecInfo& info() const override { return topk_codec_info(); }
  bool exact_size() const override { return coding_ == PlaceCoding::raw; }
  std::size_t most_bytes(std::int64_t elems) const override {
    return kHead + 8 * static_cast<std::size_t>(chosen(elems));
  }
  double density() const override { return density_; }
  double tau() const override { return tau_; }

  std::size_t encode(const Encoding& range, std::byte* wire) override {
    auto* values = static_cast<float*>(range.values);
    const auto n = static_cast<std::size_t>(range.elems);
    if (range.residual) host_vector_ops().add(DType::f32, values, range.residual, n);
    const std::int64_t m = chosen(range.elems);
    const std::uint32_t least = nth_magnitude(values, range.elems, m);
    places_from(values, range.elems, least, m - count_above(values, range.elems, least), places_);
    density_ = static_cast<double>(m) / static_cast<double>(n);
    tau_ = std::bit_cast<float>(least);
    return write(range, values, wire);
  }

  void decode(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) override {
    std::memset(values, 0, static_cast<std::size_t>(elems) * sizeof(float));
    decode_add(wire, bytes, values, elems);
  }

  void decode_add(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) override {
    std::uint32_t head = 0;
    std::memcpy(&head, wire, kHead);
    const auto m = static_cast<std::size_t>(chosen(elems));
    ECHELON_CHECK(bytes >= kHead + 4 * m, "a message of {} values has {} bytes", m, bytes);
    const std::byte* said = wire + bytes - 4 * m;
    PlaceReader places(format(head), wire + kHead, bytes - 4 * m - kHead);
    for (std::size_t i = 0; i < m; ++i) {
      const std::uint32_t place = places.next() >> 1;
      ECHELON_CHECK_LT(place, static_cast<std::uint64_t>(elems), "a message of places is damaged");
      float value = 0;
      std::memcpy(&value, said + 4 * i, sizeof value);
      static_cast<float*>(values)[place] += value;
    }
  }

 private:
  std::int64_t chosen(std::int64_t elems) const {
    if (elems == 0) return 0;
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(part_ * static_cast<double>(elems))), 1, elems);
  }
  PlaceFormat format(std::uint32_t head) const {
    if (head == kRaw) return {};
    return {.coding = coding_, .rice_bits = static_cast<std::uint8_t>(head), .extra = false};
  }

  std::size_t write(const Encoding& range, float* values, std::byte* wire) {
    said_.clear();
    for (std::uint32_t& place : places_) {
      said_.push_back(values[place]);
      values[place] = 0;
      place <<= 1;
    }
    // inf and NaN that were not among the first m are dropped: others were said.
    if (range.residual)
      each_lanes(range.elems, [&](std::int64_t i, std::int64_t n) {
        store_lanes(range.residual + i, finite_or_zero(load_lanes(values + i, n)), n);
      });
    std::memset(values, 0, static_cast<std::size_t>(range.elems) * sizeof(float));
    for (std::size_t i = 0; i < said_.size(); ++i) values[places_[i] >> 1] = said_[i];

    PlaceFormat as = format_for(coding_, false, places_.size(), range.elems);
    if (bytes_of_places(as, places_) > 4 * places_.size()) as = {};
    const std::uint32_t head = as.coding == PlaceCoding::raw ? kRaw : as.rice_bits;
    std::memcpy(wire, &head, kHead);
    const std::size_t at = kHead + whole_words(write_places(as, places_, wire + kHead));
    std::memcpy(wire + at, said_.data(), 4 * said_.size());
    return at + 4 * said_.size();
  }

  double part_;
  PlaceCoding coding_;
  double density_ = 1, tau_ = 0;
  std::vector<std::uint32_t> places_;
  std::vector<float> said_;
};

}  // namespace

const CodecInfo& topk_codec_info() {
  static constexpr CodecInfo info{.name = "topk", .route = CodecRoute::gather, .lossy = true};
  return info;
}

std::unique_ptr<Codec> make_topk_codec(const CodecOptions& options) { return std::make_unique<TopK>(options); }

}  // namespace echelon
