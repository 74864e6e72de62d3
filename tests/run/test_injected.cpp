// SPDX-License-Identifier: Apache-2.0
// Tries every line of the table of faults (slurm/FAULTS.md) on three ranks, in runs of a second, a few at a time.
// tests/tools/faults.py tries them under every strategy.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Outcome;
using test::Sets;
using test::Trial;
using test::with;

constexpr std::size_t kAtOnce = 4;
const Sets kShort = {"train.epochs=0", "train.steps=24", "checkpoint.every_steps=8", "evaluate.every_epochs=0"};
const std::string kSoon = "run.hang_timeout_s=3";  // for faults that lead to a hang; runs share the machine

struct Line {
  std::string fault;
  int code = 0;
  std::vector<std::string> names = {};  // words that must be printed
  Sets sets = {};
  bool same_weights = false;  // as those without the fault
  int or_code = -1;           // the other possible code, depending on what happens first
};

const std::vector<Line>& table() {
  static const Sets checked = {"exchange.check_messages=true"}, checked_soon = with(checked, {kSoon});
  static const std::vector<Line> all = {
      {"stop rank 1 at step 12", kExitLostRank, {"has been waiting", "process of rank 1 on ", "stopped"}, {kSoon}},
      {"drop message of rank 1 at step 12", kExitEnvironment, {}, checked_soon, false, kExitLostRank},
      {"drop message of rank 1 at step 12 in exchange", kExitLostRank, {"rank 1"}, {kSoon}, false, kExitEnvironment},
      {"cut rank 1 at step 12", kExitLostRank, {"has been waiting"}, {kSoon}},
      {"kill rank 1 at step 12 in backward", kExitLostRank, {"rank 1 on ", "was lost"}},
      {"kill a random rank at a random step from 9 to 20", kExitLostRank, {"was lost"}},
      {"stop rank 1 for 300ms at step 12 in forward", kExitOk, {}, {}, true},
      {"slow rank 2 by 3", kExitOk, {}, {}, true},
      {"delay messages of rank 1 by 1ms", kExitOk, {}, {}, true},
      {"corrupt message of rank 2 at step 12 in backward",
       kExitEnvironment,
       {"a message from rank 2 on ", "to rank ", "tag ", "arrived damaged: its CRC32C is ", "at step 1"},
       checked},
      {"disk full after 20KB", kExitEnvironment, {"No space left on device"}},
      {"short writes", kExitOk, {}, {}, true},
      {"fsync fails at step 12", kExitEnvironment, {"Input/output error"}},
      {"reads at 500KB a second on rank 1", kExitOk, {}, {}, true},
      {"flip bit 10 of weight 20 of rank 1 at step 12",
       kExitNumeric,
       {"weights of rank 1 differ", "after step 16", "conv1.weight"},
       {"exchange.verify_every_steps=8"}},
      {"flip bit 3 of gradient 20 of rank 1 at step 12", kExitOk, {}, {}},
      {"flip shard bit on rank 1", kExitData, {"damaged"}, {}},
  };
  return all;
}

Sets faulty(const Line& line) {
  return with(with(kShort, line.sets), {"run.allow_faults=true", "fault.inject=[\"" + line.fault + "\"]"});
}

std::string faults_of(const Trial& trial) {
  const std::string path = trial.run() + "/faults.jsonl";
  return std::filesystem::exists(path) ? read_file_whole(path) : "";
}

std::vector<double> weights_of(const Trial& trial) { return test::last_values(trial, "weights/"); }

struct Tried {
  Outcome outcome, resumed;
  int ended = 0;  // exit code of the faulty run, from its status
};

// Runs with the fault and, where that fails, again without it.
Tried try_line(const Line& line, const Trial& trial) {
  Tried tried;
  tried.outcome = trial.train(3, faulty(line));
  const bool disk = line.fault.starts_with("disk") || line.fault.starts_with("fsync");  // no status can be written
  tried.ended = disk ? tried.outcome.code : trial.status()["exit_code"].get<int>();
  if (line.code != kExitOk) tried.resumed = trial.train(3, with(with(kShort, line.sets), {"run.hang_timeout_s=60"}));
  return tried;
}

void check_line(const Line& line, const Trial& trial, const Tried& tried, const Trial& plain) {
  const auto& [outcome, resumed, ended] = tried;
  CAPTURE(line.fault, outcome.out, outcome.err, resumed.out, resumed.err);
  CHECK_FALSE(outcome.timed_out);
  // mpirun returns 137, or 134 where a message that is too long crashes Open MPI; the run's code is in its status.
  if (line.fault.starts_with("kill") || line.fault.starts_with("drop"))
    CHECK(outcome.code != kExitOk);
  else
    CHECK((outcome.code == line.code || outcome.code == line.or_code));
  for (const std::string& name : line.names) CHECK_THAT(outcome.err + outcome.out, Contains(name));
  CHECK_THAT(faults_of(trial), Contains("\"fault\":\"" + line.fault + "\""));
  CHECK_THAT(outcome.err, Contains("injected fault: \"" + line.fault + "\""));
  CHECK((ended == line.code || ended == line.or_code));
  if (line.code != kExitOk) CHECK(resumed.code == kExitOk);
  if (line.same_weights || (line.code != kExitOk && line.code != kExitNumeric))
    CHECK(weights_of(plain) == weights_of(trial));
}

TEST_CASE("every line of the table of faults", "[run][faults]") {
  const Trial plain;
  REQUIRE(plain.train(3, kShort).code == kExitOk);
  for (std::size_t begin = 0; begin < table().size(); begin += kAtOnce) {
    const std::size_t end = std::min(table().size(), begin + kAtOnce);
    std::vector<Trial> trials(end - begin);
    std::vector<std::future<Tried>> outcomes;
    for (std::size_t i = begin; i < end; ++i) {
      if (table()[i].code == kExitData) trials[i - begin].compress();
      outcomes.push_back(std::async(std::launch::async, [&, i] { return try_line(table()[i], trials[i - begin]); }));
    }
    for (std::size_t i = begin; i < end; ++i)
      check_line(table()[i], trials[i - begin], outcomes[i - begin].get(), plain);
  }
}

TEST_CASE("reads at a given rate take the time of their bytes", "[run][faults]") {
  const Trial trial;
  constexpr double kRate = 100 * 1024;
  const Outcome run =
      trial.train(1, {"train.epochs=1", "run.allow_faults=true", "fault.inject=[\"reads at 100KB a second\"]"});
  INFO(run.out << run.err);
  REQUIRE(run.code == kExitOk);
  const auto summary = trial.summary();
  const double read_s = summary["bytes_read"].get<double>() / kRate;
  const double data_s = summary["time_split_s"]["data"].get<double>() * summary["steps"].get<double>();
  CHECK(read_s > 0.3);
  CHECK(data_s > 0.5 * read_s);
}

TEST_CASE("a flipped bit of a checkpoint is found by the next start, which takes the one before", "[run][faults]") {
  const Trial trial;
  const Outcome first = trial.train(
      3,
      with(kShort, {"run.allow_faults=true", "fault.inject=[\"flip checkpoint bit at step 16\"]", "train.steps=16"}));
  INFO(first.out << first.err);
  REQUIRE(first.code == kExitOk);
  const Outcome second = trial.train(3, kShort);
  INFO(second.out << second.err);
  CHECK(second.code == kExitOk);
  CHECK_THAT(second.err, Contains("step-00000016 is damaged and was skipped"));
  CHECK_THAT(second.out, Contains("from step 8"));
}

TEST_CASE("a fault happens once in a run, and later attempts go on past it", "[run][faults]") {
  const Trial trial;
  const Sets sets = with(kShort, {"run.allow_faults=true", "fault.inject=[\"kill rank 2 at step 12\"]"});
  CHECK(trial.train(3, sets).code != kExitOk);
  const Outcome again = trial.train(3, sets);
  INFO(again.out << again.err);
  CHECK(again.code == kExitOk);
  CHECK(trial.attempts() == 2);
}

TEST_CASE("a fault whose moment does not come is named, and runs of one process refuse to kill one rank",
          "[run][faults]") {
  const Trial trial;
  const Outcome outcome =
      trial.train(2, with(kShort, {"run.allow_faults=true", "fault.inject=[\"cut rank 1 at step 99\"]"}));
  INFO(outcome.err);
  CHECK(outcome.code == kExitOk);
  CHECK_THAT(outcome.err, Contains("fault 1 (\"cut rank 1 at step 99\") of rank 1 did not happen"));
  CHECK_THAT(trial.status()["provenance"]["mpi"].get<std::string>(), !Contains("disturbed") && !Contains("checked"));
  const Outcome threads = trial.echelon({"train", "trial.toml", "--local-ranks", "2", "--set", "run.allow_faults=true",
                                         "--set", "fault.inject=[\"kill rank 1\"]"});
  CHECK(threads.code == kExitConfig);
  CHECK_THAT(threads.err, Contains("--local-ranks"));
}

}  // namespace
}  // namespace echelon
