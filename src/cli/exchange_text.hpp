// The exchange of a step as text for `check`: algorithm, buckets, messages and bytes by the price list.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "device/parameter.hpp"

namespace echelon::cli {

// The ranks that gradients are summed over.
struct ExchangeRanks {
  std::vector<int> hosts;  // by rank, servers on ranks of their own last
  int servers = 0;         // of them
  int replicas = 1;        // of the model
  int workers() const { return static_cast<int>(hosts.size()) - servers; }
};

// One line without its label: "synchronous, ring all-reduce in 3 buckets of 4.00 MiB: 21.3 MiB a step over all ranks,
// ..". Throws as price_allreduce and make_codec do.
std::string exchange_text(const Config& config, const ParameterSet& parameters, const ExchangeRanks& ranks);

}  // namespace echelon::cli
