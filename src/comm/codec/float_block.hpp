// SPDX-License-Identifier: Apache-2.0
// Compresses 256 values of f32 without loss: zeros take one bit each where there are at least ten, exponents four bits.
// A block takes 4 bytes (all zeros) to 1028 bytes.
//
// Gradients are zero behind an inactive ReLU, and the exponents of the others lie close to the largest of their block;
// signs and mantissas cannot be compressed.
//
//   block      u8 largest exponent E, u8 kind, u8 number x of exceptions, u8 0; the rest depends on the kind
//     whole    the 256 values
//     dense    x exceptions, m = 256 values
//     sparse   256 bits, 1 where a value is not 0; x exceptions, those m values
//     nothing  no further bytes: all values are 0
//   m values   3 m bytes sign and mantissa, then m nibbles E - exponent, filling bytes from the lowest; a nibble of 15
//              means that the exponent is the next of the exceptions
// Only +0 counts as zero: -0, inf and NaN keep their bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace echelon::inline comm {

inline constexpr std::int64_t kFloatBlock = 256;
inline constexpr std::size_t kMostFloatBlockBytes = 4 + 256 * 4;
inline constexpr std::size_t kFloatBlockSlack = 128;  // bytes behind a block that may be written, and that are read

// Returns the bytes written; `to` has room for kMostFloatBlockBytes and the slack.
std::size_t pack_block(const float* values, std::byte* to);

// Reads a block that begins at `from`; `bytes` of the message are left, and the slack behind them is readable. Returns
// the length of the block. `values` has room for 256. A check fails (exit 1) if the block is longer than `bytes`.
std::size_t unpack_block(const std::byte* from, std::size_t bytes, float* values);

}  // namespace echelon::inline comm
