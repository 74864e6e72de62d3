// What strategies say of themselves that sum by the all-reduce of exchange.algorithm (exchange/entry.hpp).
#pragma once

#include "comm/collective/algorithms.hpp"
#include "exchange/entry.hpp"

namespace echelon::inline exchange {

struct SummedBucket {
  ArenaRange range;
  AllreduceRequest request;
};
// Of the parameters, with the all-reduce of each.
std::vector<SummedBucket> summed_buckets(const StepExchange& exchange);

ExchangeArenas sums_arenas(const Config& config, const ParameterSet& parameters, int replicas);
// Every `period` steps.
std::string sums_text(const StepExchange& exchange, std::int64_t period);
std::string sums_title(const ExchangeConfig& config);

}  // namespace echelon::inline exchange
