// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/algorithms.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::inline comm {

std::vector<std::string> allreduce_names() {
  return names_where(kAlgorithms, [](const AlgorithmTraits& a) { return !a.on_devices && !a.measured; });
}

bool sums_on_devices(std::string_view algorithm) { return algorithm_traits(algorithm).on_devices; }

std::shared_ptr<const Plan> make_allreduce(std::string_view algorithm, const AllreduceRequest& request) {
  ECHELON_CHECK(request.ranks >= 1 && request.rank >= 0 && request.rank < request.ranks, "rank {} of {}", request.rank,
                request.ranks);
  ECHELON_CHECK_GE(request.elems, 0);
#define X(name, ...) \
  if (algorithm == #name) return make_##name##_allreduce(request);
  ECHELON_ALLREDUCE(X)
#undef X
  if (sums_on_devices(algorithm))
    throw ConfigError(fmt::format(
        "all-reduce '{}' has no plan: it sums gradients of strategy 'synchronous' between GPUs; nearest valid: 'mpi'",
        algorithm));
  const std::vector<std::string> names = allreduce_names();
  throw ConfigError(unknown_name("all-reduce", algorithm, names));
}

}  // namespace echelon::inline comm
