// SPDX-License-Identifier: Apache-2.0
#include "job/agree.hpp"

#include <atomic>
#include <catch2/catch.hpp>

#include "base/check.hpp"
#include "tests/support/ranks.hpp"

namespace echelon {
namespace {

TEST_CASE("an error of one rank becomes the same error of all", "[train]") {
  std::atomic<int> alike{0};
  test::run_ranks(3, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    Group group(engine, 0);
    all_or_none(group, [] {});
    try {
      all_or_none(group, [&] {
        if (group.rank() > 0) throw DataError("file " + std::to_string(group.rank()) + " is missing");
      });
    } catch (const CommonError& error) {
      if (error.code() == kExitData && std::string(error.what()) == "rank 1: file 1 is missing") ++alike;
    }
    group.barrier();
  });
  CHECK(alike == 3);
}

TEST_CASE("ranks that differ are told apart", "[train]") {
  std::atomic<int> alike{0};
  test::run_ranks(3, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    Group group(engine, 0);
    require_same(group, "version", "1.0");
    try {
      require_same(group, "version", group.rank() == 2 ? "2.0" : "1.0");
    } catch (const CommonError& error) {
      const std::string text = error.what();
      if (error.code() == kExitEnvironment && text.find("rank 0 has 1.0, rank 2 has 2.0") != std::string::npos) ++alike;
    }
    group.barrier();
  });
  CHECK(alike == 3);
}

}  // namespace
}  // namespace echelon
