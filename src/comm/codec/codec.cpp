// SPDX-License-Identifier: Apache-2.0
#include "comm/codec/codec.hpp"

#include <cstring>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::inline comm {

std::vector<std::string> codec_names() { return names_in(kCodecs); }

const CodecInfo& codec_info(std::string_view name) {
  if (const CodecTraits* known = find_traits(kCodecs, name)) return *known;
  throw ConfigError(unknown_name("codec", name, codec_names()));
}

void Codec::require_length(std::size_t bytes, std::int64_t elems) const {
  ECHELON_CHECK_EQ(bytes, most_bytes(elems), "bytes of a message of {} values", elems);
}

std::unique_ptr<Codec> make_codec(std::string_view name, const CodecOptions& options) {
  const CodecInfo& info = codec_info(name);
  ECHELON_CHECK(!info.lossy || options.dtype == DType::f32, "{} takes f32", name);
#define X(known, ...) \
  if (name == #known) return make_##known##_codec(options);
  ECHELON_CODECS(X)
#undef X
  return nullptr;
}

CodedSize coded_size(std::string_view codec, const CodecOptions& options, std::int64_t elems) {
  const auto plain = static_cast<double>(size_of(options.dtype));
  if (codec == kNoCodec.name) return {.typical = plain, .most = plain};
  CodecOptions own = options;
  if (codec_info(codec).lossy) own.dtype = DType::f32;
  const auto made = make_codec(codec, own);
  const auto n = static_cast<double>(elems);
  return {.typical = made->typical_bytes(elems) / n, .most = static_cast<double>(made->most_bytes(elems)) / n};
}

std::size_t Codec::to_wire(const std::byte* raw, std::int64_t elems, double, std::byte* wire) {
  std::memcpy(wire, raw, most_bytes(elems));
  return most_bytes(elems);
}

std::size_t Codec::from_wire(const std::byte* wire, std::size_t bytes, std::int64_t elems, std::byte* raw) {
  if (exact_size()) require_length(bytes, elems);
  ECHELON_CHECK_LE(bytes, most_bytes(elems), "bytes of a message of {} values", elems);
  std::memcpy(raw, wire, bytes);
  return bytes;
}

}  // namespace echelon::inline comm
