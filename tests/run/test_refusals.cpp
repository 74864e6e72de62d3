// SPDX-License-Identifier: Apache-2.0
// Everything that ends a run early: it has its exit code and one clear message, and leaves no half-written files.
#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.hpp"
#include "checkpoint/checkpoint.hpp"
#include "h5/file.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/skip.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;

// Counts how often `part` occurs.
int times_in(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

void check_refused(const test::Trial& trial, const test::Outcome& outcome, int code, const std::string& says) {
  INFO(outcome.out << outcome.err);
  CHECK(!outcome.timed_out);
  CHECK(outcome.code == code);
  CHECK_THAT(outcome.err, Catch::Contains("echelon: error: ") && Catch::Contains(says));
  CHECK(times_in(outcome.err, "echelon: error: ") == 1);
  CHECK(trial.leftovers().empty());
}

TEST_CASE("bad command lines end with 2 and the nearest thing", "[run]") {
  const test::Trial trial;
  check_refused(trial, trial.echelon({"tarin", "trial.toml"}), 2, "did you mean 'train'");
  check_refused(trial, trial.echelon({"train", "trial.toml", "--sett", "a.b=1"}), 2, "did you mean '--set'");
  check_refused(trial, trial.echelon({"train", "nowhere.toml"}), 2, "nowhere.toml");
  check_refused(trial, trial.train(0, {"optimizer.learning_rat=1"}), 2, "learning_rate");
  check_refused(trial, trial.train(2, {"batch.global=47"}), 2, "47");
  check_refused(trial, trial.train(2, {"exchange.strategy=asynchronous", "exchange.asynchronous.soft=9"}), 2,
                "cannot come from 2 replicas; at most 2");
  check_refused(trial, trial.echelon({"data"}), 2,
                "a verb is missing: import, synth, inspect; see 'echelon data --help'");
  check_refused(trial, trial.echelon({"data", "synth"}), 2, "see 'echelon data synth --help'");
  check_refused(trial, trial.echelon({"check", "train"}), 2, "it is a folder");
  CHECK(trial.echelon({"train", "--help"}).code == 0);
  CHECK(trial.echelon({"--version"}).code == 0);
  CHECK(!fs::exists(trial / "results"));
}

TEST_CASE("bad data ends with 4 and names the file", "[run][slow]") {
  const test::Trial trial;
  const int ranks = GENERATE(0, 2);
  const std::string shard = trial / "train/shard-1.h5";
  SECTION("missing") {
    fs::remove_all(trial / "train");
    check_refused(trial, trial.train(ranks), 4, "train");
  }
  SECTION("truncated") {
    fs::resize_file(shard, fs::file_size(shard) / 2);
    check_refused(trial, trial.train(ranks), 4, "shard-1.h5");
  }
  SECTION("empty") {
    std::ofstream(shard, std::ios::trunc).flush();
    check_refused(trial, trial.train(ranks), 4, "shard-1.h5");
  }
  SECTION("no samples") {
    test::write_shard(shard, 0, "none");
    check_refused(trial, trial.train(ranks), 4, "shard-1.h5");
  }
  SECTION("another type") {
    h5::Writer writer(shard);
    const std::vector<double> pixels(64 * 5);
    const std::vector<std::uint8_t> labels(5);
    writer.attribute("format", std::string("echelon-samples"));
    writer.attribute("version", std::int64_t{1});
    writer.attribute("classes", std::int64_t{10});
    writer.write_all("samples", DType::f64, {5, 1, 8, 8}, pixels.data());
    writer.write_all("labels", DType::u8, {5}, labels.data());
    writer.publish();
    check_refused(trial, trial.train(ranks), 4, "shard-1.h5");
  }
  SECTION("a label out of range") {
    std::vector<std::uint8_t> labels(170, 3);
    labels[111] = 10;
    test::write_shard(shard, 170, "labels", labels);
    check_refused(trial, trial.train(ranks), 4, "shard-1.h5: record 111 has label 10");
  }
}

TEST_CASE("more ranks than samples end with 2", "[run][slow]") {
  const test::Trial trial;
  fs::remove_all(trial / "train");
  fs::create_directory(trial / "train");
  test::write_shard(trial / "train/shard-0.h5", 3, "few");
  check_refused(trial, trial.train(4), 2, "3");
}

TEST_CASE("a file in the way of the results ends with 3", "[run][slow]") {
  const test::Trial trial;
  std::ofstream(trial / "results") << "in the way";
  const test::Outcome outcome = trial.train(GENERATE(0, 2));
  INFO(outcome.err);
  CHECK(outcome.code == 3);
  CHECK_THAT(outcome.err, Catch::Contains("results"));
  CHECK(times_in(outcome.err, "echelon: error: ") == 1);
}

TEST_CASE("one process of several Slurm tasks ends with 3 and says how to start it", "[run]") {
  const test::Trial trial;
  const test::Outcome outcome = trial.train(0, {}, {{"SLURM_NTASKS", "2"}});  // as in the shell of a batch job
  check_refused(trial, outcome, 3, "srun --mpi=pmix");
  CHECK_THAT(outcome.err, Catch::Contains("one process that was started without srun"));
}

TEST_CASE("an end of the job that is no time to come is refused with its cure", "[run]") {
  const test::Trial trial;
  for (const char* end : {"2026-12-01T10:00", "4:00:00", "1e9", "0", "-5"})
    check_refused(trial, trial.train(0, {}, {{"ECHELON_JOB_END_TIME", end}}), 2, "date +%s");
  const std::string passed = std::to_string(std::time(nullptr) - 60);  // a loaded machine takes seconds to start MPI
  check_refused(trial, trial.train(2, {}, {{"ECHELON_JOB_END_TIME", passed}}), 2,
                "=" + passed + ": this time passed 6");
}

TEST_CASE("a loss that is no number ends with 5 and names step and rank", "[run][slow]") {
  const test::Trial trial;
  const int ranks = GENERATE(0, 2);
  const test::Outcome outcome =
      trial.train(ranks, {"optimizer.learning_rate=1000", "optimizer.weight_decay=1", "checkpoint.every_steps=0"});
  check_refused(trial, outcome, 5, "at step");
  CHECK_THAT(outcome.err, Catch::Contains("on rank 0"));
  CHECK(trial.status()["exit_code"] == 5);
  CHECK(trial.status()["state"] == "failed");
}

TEST_CASE("a loss that explodes and stays a number ends with 5", "[run]") {
  const test::Trial trial;
  const test::Outcome outcome = trial.train(0, {"optimizer.learning_rate=100", "evaluate.every_epochs=0"});
  check_refused(trial, outcome, 5, "training diverges: the loss is");
  CHECK_THAT(outcome.err, Catch::Contains("lower optimizer.learning_rate than 100"));
}

TEST_CASE("a full disk ends with 3 and leaves the earlier checkpoint whole", "[run][slow]") {
  const test::Trial trial;
  const std::string mount_point = trial / "results";
  fs::create_directory(mount_point);
  const bool mounted = ::mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=900k") == 0;
  if (test::skip_without(mounted, test::Lacks::right, "needs root, to mount a small tmpfs")) return;
  const int ranks = GENERATE(0, 2);
  const test::Outcome outcome = trial.train(ranks, {"checkpoint.keep=50"});  // each takes about 310 kB
  const auto found = find_checkpoint(trial.run() + "/checkpoints");
  const auto leftovers = trial.leftovers();
  const auto status = trial.status();
  ::umount2(mount_point.c_str(), MNT_DETACH);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 3);
  CHECK_THAT(outcome.err, Catch::Contains("No space left on device"));
  REQUIRE(found);
  CHECK(found->step == 10);
  CHECK(leftovers.empty());
  CHECK(status["state"] == "failed");
  CHECK(status["checkpoint"] == "checkpoints/step-00000010.h5");
}

// Trains on two ranks and stops this one in a step.
test::Outcome train_with_stopped_rank(const test::Trial& trial, int rank) {
  return trial.train_and(
      2, {"train.epochs=2000", "run.hang_timeout_s=1.5", "checkpoint.every_epochs=0", "evaluate.every_epochs=0"},
      fmt::format("running; kill -STOP $(rank {}); wait $pid", rank));
}

TEST_CASE("a rank that stops answering ends the job with 7 within seconds, by name", "[run][slow]") {
  const test::Trial trial;
  const test::Outcome outcome = train_with_stopped_rank(trial, 1);
  INFO(outcome.out << outcome.err);
  CHECK(!outcome.timed_out);
  CHECK(outcome.code == 7);
  CHECK_THAT(outcome.err, Catch::Contains("has been waiting") && Catch::Contains("for rank 1"));
  CHECK(trial.status()["exit_code"] == 7);
  CHECK_THAT(trial.status()["reason"].get<std::string>(), Catch::Contains("rank 1"));
  CHECK(trial.leftovers().empty());
}

TEST_CASE("errors of ranks other than 0 go to files of their own", "[run][slow]") {
  const test::Trial trial;
  const test::Outcome outcome = train_with_stopped_rank(trial, 0);
  INFO(outcome.out << outcome.err);
  CHECK(!outcome.timed_out);
  CHECK(trial.status()["exit_code"] == 7);
  CHECK_THAT(read_file_whole(trial.attempt() + "/rank-0001.err"), Catch::Contains("for rank 0"));
}

}  // namespace
}  // namespace echelon
