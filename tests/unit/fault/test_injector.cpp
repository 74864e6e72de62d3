// SPDX-License-Identifier: Apache-2.0
// A run without faults wraps nothing; a run with faults wraps only what they affect.
#include <catch2/catch.hpp>

#include "base/file_faults.hpp"
#include "comm/local/local.hpp"
#include "fault/injector.hpp"

namespace echelon {
namespace {

Config with_faults(const std::vector<std::string>& faults) {
  Config config;
  config.run.allow_faults = true;
  config.fault.inject = faults;
  return config;
}

TEST_CASE("a run without faults has no injector, and a rank without faults nothing around it", "[faults]") {
  CHECK(make_fault_injector(Config(), 0, 3) == nullptr);
  CHECK(file_faults.load() == nullptr);
  CHECK(span_place.watcher == nullptr);
  const auto injector =
      make_fault_injector(with_faults({"drop message of rank 1", "disk full after 1MB on rank 1"}), 0, 3);
  REQUIRE(injector != nullptr);
  std::unique_ptr<Transport> transport = std::move(make_local_world(3)[0]);
  const Transport* const plain = transport.get();
  CHECK(injector->around(std::move(transport)).get() == plain);
  CHECK(file_faults.load() == nullptr);
}

TEST_CASE("a rank with faults has them around its transport and its files, and not after them", "[faults]") {
  {
    const auto injector =
        make_fault_injector(with_faults({"drop message of rank 1", "disk full after 1MB on rank 1"}), 1, 3);
    std::unique_ptr<Transport> transport = std::move(make_local_world(3)[1]);
    CHECK(injector->around(std::move(transport))->name() == "local, disturbed");
    CHECK(file_faults.load() != nullptr);
  }
  CHECK(file_faults.load() == nullptr);
}

TEST_CASE("random ranks and steps follow from the seed, the same on every rank", "[faults]") {
  Config config = with_faults({"kill a random rank at a random step from 1 to 1000", "flip weight of a random rank"});
  std::set<int> killed;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    config.fault.seed = seed;
    int with_kill = 0;
    for (int rank = 0; rank < 3; ++rank)
      if (make_fault_injector(config, rank, 3)->has(FaultKind::kill)) {
        ++with_kill;
        killed.insert(rank);
      }
    CHECK(with_kill == 1);
  }
  CHECK(killed == std::set<int>{0, 1, 2});
}

TEST_CASE("faults that a launch cannot have are refused", "[faults]") {
  CHECK_NOTHROW(check_faults(with_faults({"kill rank 2"}), 3, false));
  CHECK_THROWS_WITH(check_faults(with_faults({"kill rank 3"}), 3, false), Catch::Contains("nearest valid: rank 2"));
  CHECK_THROWS_WITH(check_faults(with_faults({"kill rank 2"}), 3, true), Catch::Contains("--local-ranks"));
  CHECK_NOTHROW(check_faults(with_faults({"drop message of rank 2"}), 3, true));
}

}  // namespace
}  // namespace echelon
