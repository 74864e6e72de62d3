// SPDX-License-Identifier: Apache-2.0
// Counts of staleness from several servers are combined into those of the run.
#include "run/staleness.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "base/check.hpp"
#include "comm/engine.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"

namespace echelon {
namespace {

// The counts of rank r for worker w; rank 1 serves nothing.
StalenessTally drawn(int rank, int worker) {
  StalenessTally tally;
  const std::vector<double> values = test::random_values(50, "tally" + std::to_string(10 * rank + worker));
  for (const double value : values) tally.add(std::abs(static_cast<std::int64_t>(5 * value)), value > 0.8);
  tally.add_held(rank + 2.0 * worker);
  return tally;
}

std::vector<StalenessTally> counted_by(int rank) {
  if (rank == 1) return {};
  return {drawn(rank, 0), drawn(rank, 1)};
}

}  // namespace

TEST_CASE("staleness is put together over servers, by worker", "[run][asynchronous]") {
  constexpr int kRanks = 4;
  std::vector<std::vector<StalenessTally>> found(kRanks);
  test::run_ranks(kRanks, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    Group world(engine, 0);
    found[static_cast<std::size_t>(engine.rank())] = gather_staleness(counted_by(engine.rank()), world);
  });
  for (const std::vector<StalenessTally>& workers : found) {
    REQUIRE(workers.size() == 2);
    for (int w = 0; w < 2; ++w) {
      StalenessTally expected;
      for (const int rank : {0, 2, 3}) expected += drawn(rank, w);
      const StalenessTally& worker = workers[static_cast<std::size_t>(w)];
      CHECK(worker.histogram == expected.histogram);
      CHECK(worker.applied == expected.applied);
      CHECK(worker.dropped == expected.dropped);
      CHECK(worker.most == expected.most);
      CHECK(worker.sum == expected.sum);
      CHECK(worker.longest_s == 3 + 2.0 * w);
    }
  }
  RunFigures run;
  take_staleness({}, run);
  CHECK(!run.staleness_by_worker);
  take_staleness(found[0], run);
  CHECK(run.updates_applied == static_cast<double>(found[0][0].applied + found[0][1].applied));
  CHECK(run.staleness_by_worker->waited_s == std::vector<double>{3, 5});
  CHECK(run.staleness_by_worker->mean[1] == found[0][1].mean());
}

}  // namespace echelon
