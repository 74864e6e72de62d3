// What strategies with parameter servers say of themselves (exchange/entry.hpp).
#pragma once

#include "exchange/entry.hpp"

namespace echelon::inline exchange {

// Ranks that the weights are divided over.
double serving_ranks(const ExchangeConfig& config, int workers);
// Every `period` steps.
std::string served_text(const StepExchange& exchange, std::int64_t period);

}  // namespace echelon::inline exchange
