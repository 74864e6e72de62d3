// SPDX-License-Identifier: Apache-2.0
// Gradient buckets: ranges of the arena that are sent together. Each holds whole parameters and is fixed when the run
// is built.
#pragma once

#include <cstdint>
#include <vector>

#include "device/parameter.hpp"

namespace echelon::inline exchange {

// Returns the buckets in the order in which back-propagation finishes them, from the arena's end. Each has at least
// `bucket_bytes`, except the last and those before a boundary: parameters that all ranks of a stage hold whole never
// share a bucket with parameters that are split, so that buckets of the former are equal on all these ranks and are
// summed in the same order. Together the buckets cover the arena; with `sparse_apart` they leave out sparse parameters,
// which are exchanged separately (exchange/allreduce/row_exchange.hpp).
std::vector<ArenaRange> make_buckets(const ParameterSet& parameters, std::size_t elem_bytes, double bucket_bytes,
                                     bool sparse_apart = false);

// Identifies a bucket independently of its index; codecs derive their random draws from it.
std::uint64_t bucket_key(const ParameterSet& parameters, ArenaRange bucket);

}  // namespace echelon::inline exchange
