// SPDX-License-Identifier: Apache-2.0
#include "run/shared_results.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/support/process.hpp"
#include "tests/support/ranks.hpp"

namespace echelon {
namespace {

TEST_CASE("hosts that do not see the folder of results are named once, by the first rank", "[run]") {
  const test::TempFolder here, elsewhere;
  std::ofstream(here / "status.json") << "{}";
  const int blind = GENERATE(0, 1, 2);  // host that does not see the folder
  std::atomic<int> warnings{0}, right{0};
  test::run_ranks(4, [&](std::unique_ptr<Transport> transport) {  // ranks 0 and 1 share a host
    Engine engine(std::move(transport));
    Group group(engine, 0);
    const int rank = group.rank(), machine = std::max(0, rank - 1);
    const HostSlot slot{.rank = rank,
                        .ranks = 4,
                        .hosts = 3,
                        .local_rank = rank == 1 ? 1 : 0,
                        .host = "h" + std::to_string(machine + 1),
                        .machine = machine};
    const bool sees = machine == 0 || machine + blind < 3;
    const RunFolder folder{.run = "results/digits", .attempt = sees ? here.path() : elsewhere.path()};
    const std::string text = unshared_results(folder, slot, group, 0.1);
    warnings += text.empty() ? 0 : 1;
    right += text.find(blind == 1 ? "results/digits: h3 does not see what rank 0 on h1"
                                  : "results/digits: h2, h3 do not see what rank 0 on h1") == 0;
    group.barrier();
  });
  CHECK(warnings == (blind > 0 ? 1 : 0));
  CHECK(right == warnings);
}

}  // namespace
}  // namespace echelon
