// SPDX-License-Identifier: Apache-2.0
// Every codec with its properties. A new codec needs a line here, its body in comm/codec/<name>.cpp, and rows in
// configs/strategies/CODECS.md.
//
// These declarations decide which codec can be combined with what (config/combinations.cpp) and which keys it reads
// (config/unfit.cpp). tests/contract/test_declared.cpp compares them with the bodies.
#pragma once

#include <cstdint>

#include "config/traits/words.hpp"

namespace echelon::inline config {

// The kind of plan that a codec's messages need.
enum class CodecRoute : std::uint8_t {
  any,     // every plan of point-to-point messages: decoded values are summed, and sums are encoded again
  direct,  // reduce-scatter and all-gather straight to the owners of parts: exactly two encodings
  gather   // all-gather of the messages of all ranks, added in rank order: one encoding
};

struct CodecTraits {
  std::string_view name;
  CodecRoute route = CodecRoute::any;
  bool lossy = true;     // decoded values may differ from the encoded ones; takes only f32 and keeps residuals
  bool by_rows = false;  // codes each row of a tensor by itself (comm/codec/coded_rows.hpp)
  Words reads = {};      // keys of [exchange] that this codec reads and some others do not
};

// clang-format off
#define ECHELON_CODECS(X)                                                                          \
  X(fp16, .route = CodecRoute::any)                                                                \
  X(bf16, .route = CodecRoute::any)                                                                \
  X(int8, .route = CodecRoute::direct)                                                             \
  X(onebit, .route = CodecRoute::gather, .by_rows = true, .reads = {"code_sums"})                  \
  X(topk, .route = CodecRoute::gather, .reads = {"density", "index_coding"})                       \
  X(threshold, .route = CodecRoute::gather,                                                        \
    .reads = {"density", "tau", "index_coding"})                                                   \
  X(lossless, .route = CodecRoute::any, .lossy = false)
// clang-format on

#define X(codec, ...) CodecTraits{.name = #codec, __VA_ARGS__},
inline constexpr CodecTraits kCodecs[] = {ECHELON_CODECS(X)};
#undef X

// exchange.codec = "none": gradients are sent unchanged.
inline constexpr CodecTraits kNoCodec{.name = "none", .lossy = false};

}  // namespace echelon::inline config
