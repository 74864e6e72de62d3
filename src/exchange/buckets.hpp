// Gradients that travel together: ranges of the arena, whole parameters each, fixed when the run is built.
#pragma once

#include <cstdint>
#include <vector>

#include "device/parameter.hpp"

namespace echelon::inline exchange {

// In the order back-propagation finishes them (from the arena's end), each of at least `bucket_bytes` except the last.
// What all shards of a stage hold whole shares no bucket with what each holds some of, so that a bucket of theirs is
// the same on all of them and summed in the same order. Together they cover the arena, without its sparse parameters
// where these travel apart (exchange/allreduce/row_exchange.hpp).
std::vector<ArenaRange> make_buckets(const ParameterSet& parameters, std::size_t elem_bytes, double bucket_bytes,
                                     bool sparse_apart = false);

// What tells a bucket from others whatever their number: what codecs draw from.
std::uint64_t bucket_key(const ParameterSet& parameters, ArenaRange bucket);

}  // namespace echelon::inline exchange
