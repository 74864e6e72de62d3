// SPDX-License-Identifier: Apache-2.0
// Heap allocations of a step are equal in all runs of one build; `echelon compare` has an exact rule for them.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

using nlohmann::json;

TEST_CASE("runs of one build have equal allocations a step, and one more is a regression", "[run][compare]") {
  const Trial trial;
  for (const char* side : {"base", "fresh"})
    REQUIRE(trial.train(2, {std::string("run.results=") + side, "train.epochs=0", "train.steps=300"}).code == kExitOk);
  const auto path_of = [&](const std::string& side) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(trial / side))
      if (entry.path().filename() == "summary.json") return entry.path().string();
    return std::string();
  };
  const json base = json::parse(read_file_whole(path_of("base")));
  json fresh = json::parse(read_file_whole(path_of("fresh")));
  if (!base.contains("allocations_per_step")) return;  // a sanitised program does not count them
  CHECK(base["allocations_per_step"] > 0);
  CHECK(base["allocated_bytes_per_step"] > base["allocations_per_step"]);
  CHECK(base["allocations_per_step"] == fresh["allocations_per_step"]);
  CHECK(base["allocated_bytes_per_step"] == fresh["allocated_bytes_per_step"]);
  const std::vector<std::string> compare = {"compare", "base", "fresh", "--only", "counts"};
  const Outcome equal = trial.echelon(compare);
  INFO(equal.out << equal.err);
  CHECK(equal.code == kExitOk);
  CHECK_THAT(equal.out, Catch::Contains("allocations_per_step") && Catch::Contains("allocated_bytes_per_step"));

  fresh["allocations_per_step"] = fresh["allocations_per_step"].get<double>() + 1;
  write_file_whole(path_of("fresh"), fresh.dump());
  const Outcome more = trial.echelon(compare);
  INFO(more.out << more.err);
  CHECK(more.code == kExitUnmet);
  CHECK_THAT(more.out, Catch::Contains("REGRESSION: 1 figure worse"));
}

}  // namespace
}  // namespace echelon::test
