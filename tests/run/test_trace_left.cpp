// SPDX-License-Identifier: Apache-2.0
// run.trace of runs that end by an error: the remaining ranks write what they have recorded so far.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

// Returns the steps of each rank in trace.json of an attempt.
std::map<int, std::set<std::int64_t>> steps_by_rank(const std::string& attempt) {
  std::map<int, std::set<std::int64_t>> steps;
  const auto trace = nlohmann::json::parse(read_file_whole(attempt + "/trace.json"));
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") steps[event["pid"]];
    if (event["ph"] == "X" && event["cat"] == "step")
      steps[event["pid"]].insert(event["args"]["step"].get<std::int64_t>());
  }
  return steps;
}

bool any_parts(const std::string& attempt) {
  for (const auto& entry : fs::directory_iterator(attempt))
    if (entry.path().extension() == ".part") return true;
  return false;
}

test::Sets with_fault(const std::string& fault, const test::Sets& more = {}) {
  return test::with({"run.trace=\"steps 5..40\"", "run.allow_faults=true", "fault.inject=[\"" + fault + "\"]"}, more);
}

TEST_CASE("after an error that all ranks share the trace holds the steps so far of all of them", "[run][trace]") {
  const test::Trial trial;
  const test::Outcome run =
      trial.train(3, with_fault("flip bit 10 of weight 20 of rank 1 at step 12", {"exchange.verify_every_steps=8"}));
  INFO(run.out << run.err);
  REQUIRE(run.code == kExitNumeric);
  const std::string attempt = trial.attempt(), text = read_file_whole(attempt + "/trace.txt");
  CHECK_THAT(text, Contains("steps 5..40 of 3 ranks") && Contains("incomplete: ") &&
                       Contains("weights of rank 1 differ") && Contains("missing   no rank"));
  const auto steps = steps_by_rank(attempt);
  REQUIRE(steps.size() == 3);
  for (const int rank : {0, 1, 2})
    CHECK(steps.at(rank) == std::set<std::int64_t>{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(!any_parts(attempt));
}

TEST_CASE("after a lost rank, or the error of one, the others' traces are written, and the text names who is missing",
          "[run][trace]") {
  struct Case {
    std::string fault;
    int code;
    std::string missing;
    std::set<int> ranks;
  };
  const Case one = GENERATE(
      Case{"kill rank 1 at step 12 in backward", kExitLostRank, "missing   rank 1 on ", {0, 2}},
      Case{"corrupt message of rank 2 at step 12 in backward", kExitEnvironment, "missing   no rank", {0, 1, 2}},
      Case{"stop rank 1 at step 12", kExitLostRank, "missing   ", {}});  // mpirun wakes it up when it ends the others
  const test::Trial trial;
  const test::Outcome run =
      trial.train(3, with_fault(one.fault, {"exchange.check_messages=true", "run.hang_timeout_s=3"}));
  INFO(one.fault << "\n" << run.out << run.err);
  CHECK(trial.status()["exit_code"] == one.code);
  const std::string attempt = trial.attempt();
  CHECK_THAT(read_file_whole(attempt + "/trace.txt"), Contains("incomplete: ") && Contains(one.missing));
  std::set<int> ranks;
  for (const auto& [rank, steps] : steps_by_rank(attempt)) {
    ranks.insert(rank);
    CHECK(steps.contains(11));
    CHECK(!steps.contains(13));
  }
  if (!one.ranks.empty()) CHECK(ranks == one.ranks);
  CHECK(ranks.contains(0));
  CHECK(ranks.contains(2));
}

TEST_CASE("a run that goes on without a lost worker leaves the trace of the attempt before", "[run][trace][slow]") {
  ::setenv("OMPI_MCA_orte_enable_recovery", "1", 1);
  const test::Trial trial;
  const test::Outcome run =
      trial.train(3, with_fault("kill rank 1 at step 12", {"exchange.strategy=gossip", "run.on_lost_worker=continue"}));
  ::unsetenv("OMPI_MCA_orte_enable_recovery");
  INFO(run.out << run.err);
  REQUIRE(trial.attempts() == 2);
  CHECK(trial.status()["state"] == "finished");
  CHECK_THAT(read_file_whole(trial.run() + "/01/trace.txt"),
             Contains("incomplete: ") && Contains("missing   rank 1 on "));
  const auto second = read_file_whole(trial.run() + "/02/trace.txt");
  CHECK_THAT(second, Contains("of 2 ranks") && !Contains("incomplete"));
}

TEST_CASE("an error before the window leaves no trace, and one behind it leaves the whole one", "[run][trace]") {
  const test::Trial trial;
  const auto outcome = [&](const std::string& steps, const std::string& name) {
    return trial.train(
        2, {"run.trace=\"steps " + steps + "\"", "run.allow_faults=true", "name=" + name,
            "exchange.verify_every_steps=8", "fault.inject=[\"flip bit 10 of weight 20 of rank 1 at step 20\"]"});
  };
  CHECK(outcome("30..40", "before").code == kExitNumeric);
  CHECK(!fs::exists(trial.attempt("before") + "/trace.txt"));
  CHECK(!any_parts(trial.attempt("before")));
  CHECK(outcome("5..10", "behind").code == kExitNumeric);
  CHECK_THAT(read_file_whole(trial.attempt("behind") + "/trace.txt"), !Contains("incomplete"));
}

}  // namespace
}  // namespace echelon
