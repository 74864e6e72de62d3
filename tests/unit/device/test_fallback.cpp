// SPDX-License-Identifier: Apache-2.0
#include "device/fallback.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "cuda/cudnn/ranked.hpp"

namespace echelon {
namespace {

using cuda::Algorithm;
using cuda::rank_algorithms;
using cuda::Ranked;

std::vector<int> ids_of(const std::vector<Algorithm>& algorithms) {
  std::vector<int> ids;
  for (const Algorithm& algorithm : algorithms) ids.push_back(algorithm.id);
  return ids;
}

TEST_CASE("a slow replacement of an op is refused unless it is allowed, and the key that allows it is named",
          "[device]") {
  Fallbacks refusing(false), allowing(true);
  CHECK_THROWS_AS(refusing.replace("conv_forward f32 N1", "no algorithm", "a plain loop"), EnvironmentError);
  CHECK_THROWS_WITH(refusing.replace("conv_forward f32 N1", "no algorithm", "a plain loop"),
                    "conv_forward f32 N1: no algorithm; set device.allow_fallback = true to permit a plain loop");
  CHECK_NOTHROW(allowing.replace("conv_forward f32 N1", "no algorithm", "a plain loop"));
  CHECK_NOTHROW(refusing.note("conv_forward f32 N1", "less exact"));
}

TEST_CASE("a library's algorithms: exact ones first, each kind by the library's ranking, none above the limit",
          "[device]") {
  const cuda::Accepted accepted{.exact = {1, 0, 2}, .inexact = {7, 5}};
  const auto workspace_of = [](int id) -> std::optional<std::size_t> {
    if (id == 0) return {};  // this algorithm cannot run these shapes
    return static_cast<std::size_t>(100 * id);
  };
  const Ranked all = rank_algorithms(accepted, {5, 2, 0, 9, 7, 1}, workspace_of, 1000);
  CHECK(ids_of(all.usable) == std::vector<int>{2, 1, 5, 7});  // 9 is not acceptable, however the library ranks it
  CHECK(all.usable[1].exact);
  CHECK_FALSE(all.usable[2].exact);
  CHECK(all.usable[3].workspace_bytes == 700);
  CHECK(all.above_limit.empty());

  const Ranked bounded = rank_algorithms(accepted, {5, 2, 0, 9, 7, 1}, workspace_of, 500);
  CHECK(ids_of(bounded.usable) == std::vector<int>{2, 1, 5});
  CHECK(ids_of(bounded.above_limit) == std::vector<int>{7});
  const Ranked none = rank_algorithms(accepted, {}, workspace_of, 50);
  CHECK(none.usable.empty());
  CHECK(ids_of(none.above_limit) == std::vector<int>{1, 2, 7, 5});  // unranked: in the order accepted
  // A spare algorithm must not enlarge the scratch: the best needs 64 MiB and a bit, the other twice as much.
  const auto large = [](int id) -> std::optional<std::size_t> { return (64 * id + 1) * std::size_t{1 << 20}; };
  CHECK(ids_of(rank_algorithms({.exact = {1, 2}, .inexact = {}}, {1, 2}, large, 1 << 30).usable) ==
        std::vector<int>{1});
  CHECK(ids_of(rank_algorithms({.exact = {1, 2}, .inexact = {}}, {2, 1}, large, 1 << 30).usable) ==
        std::vector<int>{2, 1});
}

}  // namespace
}  // namespace echelon
