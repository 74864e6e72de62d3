// 256 values of f32 in fewer bytes, bit for bit: zeros as one bit each where there are some, exponents as four bits.
//
// Gradients are zero behind a ReLU that was shut, and the others' exponents lie close to their block's largest; signs
// and mantissas have nothing to leave out.
//
//   block      u8 largest exponent E, u8 kind, u8 number x of exceptions, u8 0, then by kind
//     whole    the 256 values
//     dense    x exceptions, m = 256 values
//     sparse   256 bits, 1 where a value is not 0; x exceptions, those m values
//     nothing  no more: all are 0
//   m values   3 m bytes sign and mantissa, then m nibbles E - exponent, filling bytes from the lowest; 15: the
//   exponent
//              stands among the exceptions, in order
// The zero that is left out is +0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace echelon::inline comm {

inline constexpr std::int64_t kFloatBlock = 256;
inline constexpr std::size_t kMostFloatBlockBytes = 4 + 256 * 4;
inline constexpr std::size_t kFloatBlockSlack = 128;  // bytes that may be written, and are read, behind a block

// Returns the bytes written; `to` has room for kMostFloatBlockBytes and the slack.
std::size_t pack_block(const float* values, std::byte* to);

// Reads a block that begins at `from`, of which `bytes` are there, and the slack behind them. Returns its length.
// `values` has room for 256. Checks that the message is whole.
std::size_t unpack_block(const std::byte* from, std::size_t bytes, float* values);

}  // namespace echelon::inline comm
