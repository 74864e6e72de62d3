// The messages of strategy "strom": changes of weights of one bucket, each +tau or -tau (Strom: Scalable distributed
// DNN training using commodity GPU cloud computing, Interspeech 2015).
//
//   raw       u32 entries, index << 1 | 1 for minus, rising; f32 tau                 4 + 4 n bytes for n entries
//   entropy   Golomb-Rice codes of the same (comm/codec/indices.hpp); u8 Rice parameter, 255: raw entries; f32 tau
//             5 bytes + about (log2(elems / n) + 2.5) / 8 an entry; without entries 4 bytes
//   dense     the values as they are; f32 0
//
// in the byte order of the machine. A message whose tau is NaN is of values that were not finite: it makes its entries
// NaN on every replica. Indices count from the start of the bucket, which has fewer than 2^31 values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.hpp"

namespace echelon::inline exchange {

using StromMessage = std::span<const std::byte>;

// No message of a bucket of so many values is longer; `dense`: with dense messages. A multiple of 8, so that each of
// several rooms in a row begins where doubles may.
std::size_t strom_room(std::int64_t elems, DType dtype, bool dense);

// Writes a message and returns its length. Entries as comm/codec/indices.hpp has them; tau is not 0.
std::size_t write_entries(float tau, std::span<const std::uint32_t> entries, bool entropy, std::int64_t elems,
                          std::byte* message);
// `values` may be those of the message's room already.
std::size_t write_dense(const void* values, DType dtype, std::int64_t elems, std::byte* message);

// weights += what the message of a bucket of `elems` values holds. O(entries). A failed check (exit 1) where the
// message cannot be one of that bucket.
void add_message(StromMessage message, bool entropy, void* weights, DType dtype, std::int64_t elems);

}  // namespace echelon::inline exchange
