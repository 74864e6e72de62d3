// SPDX-License-Identifier: Apache-2.0
// Compresses without loss, in blocks of 256 values (float_block.hpp); saves a fifth to a third on small networks.
//
//   message   the values themselves, if it has as many bytes as they have. If shorter: the blocks one after another,
//             the last one padded with zeros. A block of f64 is 256 bits, 1 where a value is not 0, then those values
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.hpp"
#include "comm/codec/codec.hpp"
#include "comm/codec/float_block.hpp"
#include "comm/codec/lanes.hpp"
#include "device/vector.hpp"

namespace echelon::inline comm {
namespace {

constexpr std::int64_t kBlock = kFloatBlock;
constexpr double kTypical = 0.88;  // of drawn f32 values without zeros, 28 bits each (configs/strategies/CODECS.md)

// Blocks of one type: most_bytes of a block, slack behind it, and pack and unpack as in float_block.hpp.
struct FloatBlocks {
  using Value = float;
  static constexpr std::size_t most_bytes = kMostFloatBlockBytes, slack = kFloatBlockSlack;
  static std::size_t pack(const float* values, std::byte* to) { return pack_block(values, to); }
  static std::size_t unpack(const std::byte* from, std::size_t bytes, float* values) {
    return unpack_block(from, bytes, values);
  }
};

struct DoubleBlocks {
  using Value = double;
  static constexpr std::size_t bitmap = kBlock / 8, most_bytes = bitmap + kBlock * sizeof(double), slack = 0;
  static std::size_t pack(const double* values, std::byte* to) {
    std::memset(to, 0, bitmap);
    std::size_t at = bitmap;
    for (std::size_t i = 0; i < kBlock; ++i) {
      if (std::bit_cast<std::uint64_t>(values[i]) == 0) continue;
      to[i / 8] |= std::byte{1} << (i % 8);
      std::memcpy(to + at, values + i, sizeof(double));
      at += sizeof(double);
    }
    return at;
  }
  static std::size_t unpack(const std::byte* from, std::size_t bytes, double* values) {
    std::size_t at = bitmap;
    for (std::size_t i = 0; i < kBlock; ++i) {
      values[i] = 0;
      ECHELON_CHECK_LE(at, bytes, "a message of blocks is damaged");
      if ((from[i / 8] >> (i % 8) & std::byte{1}) == std::byte{0}) continue;
      ECHELON_CHECK_LE(at + sizeof(double), bytes, "a message of blocks is damaged");
      std::memcpy(values + i, from + at, sizeof(double));
      at += sizeof(double);
    }
    return at;
  }
};

// Returns 0 if the message would not be shorter than the values.
template <class Blocks, class Value = typename Blocks::Value>
std::size_t pack_all(const Value* values, std::int64_t elems, std::byte* wire) {
  const std::size_t plain = static_cast<std::size_t>(elems) * sizeof(Value);
  std::array<std::byte, Blocks::most_bytes + Blocks::slack> last;
  std::array<Value, kBlock> part{};
  std::size_t at = 0;
  for (std::int64_t i = 0; i < elems; i += kBlock) {
    const Value* from = values + i;
    if (elems - i < kBlock) std::copy(from, values + elems, part.begin()), from = part.data();
    const bool fits = plain - at > last.size();
    const std::size_t bytes = Blocks::pack(from, fits ? wire + at : last.data());
    if (at + bytes >= plain) return 0;
    if (!fits) std::memcpy(wire + at, last.data(), bytes);
    at += bytes;
  }
  return at;
}

template <class Blocks, bool kAdd, class Value = typename Blocks::Value>
void unpack_all(const std::byte* wire, std::size_t bytes, Value* values, std::int64_t elems) {
  std::array<std::byte, Blocks::most_bytes + Blocks::slack> last;
  std::array<Value, kBlock> block;
  constexpr auto kCacheLine = static_cast<std::int64_t>(64 / sizeof(Value));
  std::size_t at = 0;
  for (std::int64_t i = 0; i < elems; i += kBlock) {
    const std::int64_t n = std::min(kBlock, elems - i);
    for (std::int64_t j = 0; j < kBlock; j += kCacheLine) fetch_ahead(values + i + j, 2 * kBlock);
    const std::size_t left = bytes - at;
    const std::byte* from = wire + at;
    if (left < last.size()) std::memcpy(last.data(), from, left), from = last.data();
    const bool direct = !kAdd && n == kBlock;
    at += Blocks::unpack(from, left, direct ? values + i : block.data());
    if (direct) continue;
    for (std::int64_t j = 0; j < n; ++j)
      values[i + j] = kAdd ? values[i + j] + block[static_cast<std::size_t>(j)] : block[static_cast<std::size_t>(j)];
  }
}

class Lossless final : public Codec {
 public:
  explicit Lossless(const CodecOptions& options) : dtype_(options.dtype), width_(size_of(options.dtype)) {}
  const CodecInfo& info() const override { return codec_info("lossless"); }
  std::size_t value_bytes() const override { return width_; }
  std::size_t most_bytes(std::int64_t elems) const override { return width_ * static_cast<std::size_t>(elems); }
  bool exact_size() const override { return false; }
  double typical_bytes(std::int64_t elems) const override { return kTypical * static_cast<double>(most_bytes(elems)); }

  std::size_t encode(const Encoding& range, std::byte* wire) override {
    const std::size_t bytes = dtype_ == DType::f32
                                  ? pack_all<FloatBlocks>(static_cast<const float*>(range.values), range.elems, wire)
                                  : pack_all<DoubleBlocks>(static_cast<const double*>(range.values), range.elems, wire);
    if (bytes > 0) return bytes;
    const std::size_t plain = most_bytes(range.elems);
    std::memcpy(wire, range.values, plain);
    return plain;
  }

  void decode(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) override {
    if (bytes == most_bytes(elems))
      std::memcpy(values, wire, bytes);
    else
      unpack<false>(wire, bytes, values, elems);
  }

  void decode_add(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) override {
    if (bytes == most_bytes(elems))
      host_vector_ops().add(dtype_, values, wire, static_cast<std::size_t>(elems));
    else
      unpack<true>(wire, bytes, values, elems);
  }

 private:
  template <bool kAdd>
  void unpack(const std::byte* wire, std::size_t bytes, void* values, std::int64_t elems) const {
    if (dtype_ == DType::f32)
      unpack_all<FloatBlocks, kAdd>(wire, bytes, static_cast<float*>(values), elems);
    else
      unpack_all<DoubleBlocks, kAdd>(wire, bytes, static_cast<double*>(values), elems);
  }

  DType dtype_;
  std::size_t width_;
};

}  // namespace

std::unique_ptr<Codec> make_lossless_codec(const CodecOptions& options) { return std::make_unique<Lossless>(options); }

}  // namespace echelon::inline comm
