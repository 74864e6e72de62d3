// SPDX-License-Identifier: Apache-2.0
// The all-reduce and the codec that [exchange] asks for.
#pragma once

#include <vector>

#include "base/dtype.hpp"
#include "comm/codec/codec.hpp"
#include "comm/collective/algorithms.hpp"
#include "config/schema.hpp"

namespace echelon::inline exchange {

// Returns a request with rank 0 and no elements, which the caller sets. `hosts` is as in Transport::hosts. With
// exchange.server.ranks it must hold all ranks of the run, of which the last are the servers. Throws ConfigError if
// there are fewer ranks than exchange.servers.
AllreduceRequest allreduce_request(const ExchangeConfig& config, const std::vector<int>& hosts, DType dtype);

// `rows`: those of the values to encode (comm/codec/coded_rows.hpp). `ranks`: the terms of a sum.
CodecOptions codec_options(const ExchangeConfig& config, DType dtype, std::vector<CodedRun> rows, int ranks = 1);

// Whether the all-reduce, or its part inside hosts, uses memory that ranks share.
bool sums_in_memory(const ExchangeConfig& config);

// Returns "ring", "server (on 2 of 4 ranks)" or "hierarchical (tree inside hosts, ring between)".
std::string algorithm_text(const ExchangeConfig& config, int ranks);

}  // namespace echelon::inline exchange
