// Every strategy. Adding one: a file here with `make_<name>` and a line in config/traits/strategies.hpp that says what
// it is; its own keys in config/strategies/<name>.hpp.
#pragma once

#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

#define X(name, ...) \
  std::unique_ptr<Strategy> make_##name(const ExchangeConfig& config, const StrategyContext& context);
ECHELON_STRATEGIES(X)
#undef X

}  // namespace echelon::inline exchange
