// SPDX-License-Identifier: Apache-2.0
// Values whose magnitude is at least tau are sent as +-tau; the residual keeps the rest of them and all other values
// (Strom: Scalable distributed DNN training using commodity GPU cloud computing, Interspeech 2015).
//
//   message   u32 number of indices; f32 tau; u8 format (Rice parameter, 254 map, 255 raw); u8 1 if a value that is inf
//             or NaN follows; u16 0; [u32 index, f32 value of the first such value]; the indices, each with a bit for
//             minus
//   map       two bits per value instead of indices, 1 plus, 2 minus: used if it is shorter
//
// tau = 0 adapts (tau.hpp). The first inf or NaN is encoded unchanged, the others as tau.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "comm/codec/lanes.hpp"
#include "comm/codec/select.hpp"
#include "comm/codec/sparse_codec.hpp"
#include "comm/codec/tau.hpp"
#include "device/vector.hpp"

namespace echelon::inline comm {
namespace {

constexpr std::uint8_t kMap = 254, kRaw = 255;

struct Head {
  std::uint32_t count = 0;
  float tau = 0;
  std::uint8_t format = kRaw;
  std::uint8_t exception = 0;
  std::uint16_t none = 0;
};
using Exception = Selected::Exception;

std::size_t map_bytes(std::int64_t elems) { return static_cast<std::size_t>((elems + 3) / 4); }

class Threshold final : public SparseCodec<Threshold> {
  friend SparseCodec<Threshold>;

 public:
  explicit Threshold(const CodecOptions& options)
      : SparseCodec(options), adapts_(options.tau == 0), tau_(static_cast<float>(options.tau)) {}
  const CodecInfo& info() const override { return codec_info("threshold"); }
  bool exact_size() const override { return false; }
  std::size_t most_bytes(std::int64_t elems) const override {
    return sizeof(Head) + sizeof(Exception) + map_bytes(elems);
  }
  double typical_bytes(std::int64_t elems) const override {
    const auto map = static_cast<double>(sizeof(Head) + map_bytes(elems));
    return std::min(expected_bytes(sizeof(Head), true, 0, elems), map);
  }
  double tau() const override { return tau_; }
  void set_tau(double tau) override {
    if (adapts_) tau_ = static_cast<float>(tau);
  }

  std::size_t encode(const Encoding& range, std::byte* wire) override {
    if (adapts_ && tau_ == 0) begin(range);
    head_ = {.count = 0, .tau = tau_, .format = kRaw, .exception = 0, .none = 0};
    selected_.clear();
    if (tau_ > 0)
      encode_range(range);
    else
      encode_without_tau(range);
    density_ = static_cast<double>(selected_.count) / static_cast<double>(range.elems);
    const std::size_t bytes = write(coding_, range.elems, wire);
    if (adapts_) adapt(largest_residual(range));
    return bytes;
  }

  std::size_t to_wire(const std::byte* raw, std::int64_t elems, double largest_residual, std::byte* wire) override {
    parse(raw, most_bytes(elems), elems);
    tau_ = head_.tau;
    density_ = static_cast<double>(selected_.count) / static_cast<double>(elems);
    const std::size_t bytes = write(coding_, elems, wire);
    if (adapts_) adapt(largest_residual);
    return bytes;
  }

 private:
  IndexFormat format(std::uint8_t byte) const {
    if (byte == kRaw) return {.coding = IndexCoding::raw, .rice_bits = 0, .extra = true};
    return {.coding = coding_, .rice_bits = byte, .extra = true};
  }

  // Adds the residual to the values, and chooses the first tau from the sums.
  void begin(const Encoding& range) {
    auto* values = static_cast<float*>(range.values);
    const auto n = static_cast<std::size_t>(range.elems);
    if (range.residual) {
      host_vector_ops().add(DType::f32, values, range.residual, n);
      std::memset(range.residual, 0, n * sizeof(float));
    }
    tau_ = first_tau(values, range.elems, chosen(range.elems));
  }

  void encode_range(const Encoding& range) {
    select_beyond(tau_, static_cast<float*>(range.values), range.residual, range.elems, 0, selected_);
    if (!selected_.exception) return;
    head_.exception = 1;
    exception_ = *selected_.exception;
  }

  // Encodes while there is no tau: all values were zero, or most were inf or NaN. `begin` has added the residual.
  void encode_without_tau(const Encoding& range) {
    auto* values = static_cast<float*>(range.values);
    for (std::int64_t i = 0; i < range.elems && head_.exception == 0; ++i) {
      if (magnitude_bits(values[i]) < kInfinityBits) continue;
      head_.exception = 1;
      exception_ = {.index = static_cast<std::uint32_t>(i), .value = values[i]};
    }
    if (range.residual)
      each_lanes(range.elems, [&](std::int64_t i, std::int64_t n) {
        store_lanes(range.residual + i, finite_or_zero(load_lanes(values + i, n)), n);
      });
    std::memset(values, 0, static_cast<std::size_t>(range.elems) * sizeof(float));
    if (head_.exception) values[exception_.index] = exception_.value;
  }

  std::size_t write(IndexCoding coding, std::int64_t elems, std::byte* wire) {
    const std::span<const std::uint32_t> entries = selected_.all();
    IndexFormat as = format_for(coding, true, entries.size(), elems);
    std::size_t bytes = bytes_of_indices(as, entries);
    if (bytes > 4 * entries.size()) as = format(kRaw), bytes = 4 * entries.size();
    const bool map = bytes > map_bytes(elems);
    head_.count = static_cast<std::uint32_t>(entries.size());
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

  // Reads the part before the indices; returns where they begin.
  static std::size_t read_head(const std::byte* wire, std::size_t bytes, std::int64_t elems, Head& head,
                               Exception& exception) {
    std::size_t at = sizeof head;
    ECHELON_CHECK_LE(at, bytes, "a sparse message is damaged");
    std::memcpy(&head, wire, at);
    if (head.exception) {
      ECHELON_CHECK_LE(at + sizeof exception, bytes, "a sparse message is damaged");
      std::memcpy(&exception, wire + at, sizeof exception);
      at += sizeof exception;
      ECHELON_CHECK_LT(exception.index, static_cast<std::uint64_t>(elems), "a sparse message is damaged");
    }
    if (head.format == kMap) ECHELON_CHECK_LE(at + map_bytes(elems), bytes, "a sparse message is damaged");
    return at;
  }

  template <class Clear>
  void read(const std::byte* wire, std::size_t bytes, float* values, std::int64_t elems, Clear clearing) const {
    Head head;
    Exception exception;
    const std::size_t at = read_head(wire, bytes, elems, head, exception);
    if (head.format == kMap) {
      clearing.finish();
      read_map(wire + at, head.tau, values, elems);
    } else {
      IndexReader indices(format(head.format), wire + at, bytes - at);
      for (std::uint32_t i = 0; i < head.count; ++i) {
        const std::uint32_t entry = indices.next();
        ECHELON_CHECK_LT(entry >> 1, static_cast<std::uint64_t>(elems), "a sparse message is damaged");
        clearing.reach(entry >> 1);
        values[entry >> 1] += (entry & 1) != 0 ? -head.tau : head.tau;
      }
      clearing.finish();
    }
    if (head.exception) values[exception.index] += exception.value;
  }

  static void read_map(const std::byte* map, float tau, float* values, std::int64_t elems) {
    for (std::int64_t i = 0; i < elems; ++i)
      if (const int code = map_code(map, i); code != 0) values[i] += code == 1 ? tau : -tau;
  }
  static int map_code(const std::byte* map, std::int64_t i) {
    return (static_cast<int>(map[i / 4]) >> (2 * (i & 3))) & 3;
  }

  // Reads a message into head_, exception_ and entries_.
  void parse(const std::byte* wire, std::size_t bytes, std::int64_t elems) {
    const std::size_t at = read_head(wire, bytes, elems, head_, exception_);
    ECHELON_CHECK_LE(head_.count, static_cast<std::uint64_t>(elems), "a sparse message is damaged");
    selected_.clear();
    std::vector<std::uint32_t>& entries = selected_.entries;
    make_room(entries, static_cast<std::size_t>(elems));
    if (head_.format == kMap) {
      for (std::int64_t i = 0; i < elems; ++i)
        if (const int code = map_code(wire + at, i); code != 0)
          entries[selected_.count++] = static_cast<std::uint32_t>(i) << 1 | (code == 2 ? 1u : 0u);
      return;
    }
    IndexReader indices(format(head_.format), wire + at, bytes - at);
    while (selected_.count < head_.count) {
      const std::uint32_t entry = entries[selected_.count++] = indices.next();
      ECHELON_CHECK_LT(entry >> 1, static_cast<std::uint64_t>(elems), "a sparse message is damaged");
    }
  }

  // Returns the largest magnitude in the residual; needed only if nothing was encoded.
  double largest_residual(const Encoding& range) const {
    if (density_ > 0 || !range.residual) return INFINITY;
    return host_vector_ops().max_abs(DType::f32, range.residual, static_cast<std::size_t>(range.elems));
  }

  void adapt(double largest_residual) { tau_ = adapted_tau(tau_, density_, aim_, largest_residual); }

  bool adapts_;
  float tau_;
  Head head_;
  Exception exception_;
  Selected selected_;  // result of the last encode or parse
};

}  // namespace

std::unique_ptr<Codec> make_threshold_codec(const CodecOptions& options) {
  return std::make_unique<Threshold>(options);
}

}  // namespace echelon::inline comm
