// Every strategy. Adding one: a file here with `make_<name>`, a line below, a row in the matrix of allowed
// combinations.
#pragma once

#include "exchange/strategy.hpp"

namespace echelon {

#define ECHELON_STRATEGIES(X) X(synchronous) X(server)

#define X(name) std::unique_ptr<Strategy> make_##name(const ExchangeConfig& config, const StrategyContext& context);
ECHELON_STRATEGIES(X)
#undef X

}  // namespace echelon
