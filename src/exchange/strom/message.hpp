// SPDX-License-Identifier: Apache-2.0
// The messages of strategy "strom": changes of weights of one bucket, each +tau or -tau (Strom: Scalable distributed
// DNN training using commodity GPU cloud computing, Interspeech 2015).
//
//   raw       u32 entries, index << 1 | 1 for minus, ascending; f32 tau              4 + 4 n bytes for n entries
//   entropy   Golomb-Rice codes of the same (comm/codec/indices.hpp); u8 Rice parameter, 255: raw entries; f32 tau
//             5 bytes + about (log2(elems / n) + 2.5) / 8 per entry; without entries 4 bytes
//   dense     the values themselves; f32 0
//
// Messages are in the machine's byte order. tau is NaN if values were not finite: the message makes its entries NaN on
// every replica. Indices count from the start of the bucket, which has fewer than 2^31 values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.hpp"

namespace echelon::inline exchange {

using StromMessage = std::span<const std::byte>;

// The length of the longest message of a bucket with this number of values; with `dense`, dense messages count too. It
// is a multiple of 8, so that consecutive buffers are aligned for doubles.
std::size_t strom_room(std::int64_t elems, DType dtype, bool dense);

// Writes a message and returns its length. Entries are as in comm/codec/indices.hpp; tau must not be 0.
std::size_t write_entries(float tau, std::span<const std::uint32_t> entries, bool entropy, std::int64_t elems,
                          std::byte* message);
// Writes a dense message and returns its length. `values` may already be at `message`.
std::size_t write_dense(const void* values, DType dtype, std::int64_t elems, std::byte* message);

// weights += the message, of a bucket of `elems` values. O(entries). A check fails (exit 1) if the message cannot be
// one of that bucket.
void add_message(StromMessage message, bool entropy, void* weights, DType dtype, std::int64_t elems);

}  // namespace echelon::inline exchange
