// SPDX-License-Identifier: Apache-2.0
// Changes under a run: its data grow between two starts, and checkpoints vanish while others read them.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

using Catch::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

}  // namespace

TEST_CASE("a run that is resumed after its data have grown says how its steps are counted", "[run][resume][data]") {
  const Trial trial;  // 17 steps per epoch
  const Sets sets = {"train.epochs=2", "checkpoint.every_steps=1", "device.pace_ms=20", "data.test="};
  const Outcome stopped = trial.train_and(0, sets, "reached 20; kill -USR1 $pid; wait $pid");
  INFO(stopped.out << stopped.err);
  REQUIRE(stopped.code == kExitRequeue);
  write_shard(trial / "train/more.h5", 400, "more");  // 25 steps per epoch
  const Outcome resumed = trial.train(0, sets);
  INFO(resumed.out << resumed.err);
  REQUIRE(resumed.code == kExitOk);
  CHECK_THAT(resumed.out + resumed.err,
             Contains("was trained on different data") && Contains("(800 samples; data.train has 1,200)"));
  CHECK_THAT(resumed.out + resumed.err, Contains("an epoch now has 25 steps, but it had 17"));
  CHECK_THAT(resumed.out + resumed.err,
             Contains("beyond epoch 2, because the data have grown and 2 epochs now take more steps"));
  CHECK_THAT(resumed.out + resumed.err, !Contains("epoch 3"));
  CHECK(trial.summary()["steps"] == 50);
}

TEST_CASE("followers outlive checkpoints that the run removes before they are read", "[run][follow]") {
  const Trial trial;
  const Sets sets = {"train.steps=40",    "train.epochs=0",    "checkpoint.every_steps=2",
                     "checkpoint.keep=1", "evaluate.by=aside", "device.pace_ms=10"};
  const std::string follow =
      "\"$ECHELON_BINARY\" eval results/trial --follow --every 0.01 --patience 30 --threads 1 > follow.$i 2>&1 || "
      "echo died > died.$i";
  const Outcome both = trial.train_and(
      0, sets,
      "for i in 1 2 3; do ( " + follow + " ) & all=\"${all:-} $!\"; done; wait $pid; code=$?; wait $all; exit $code",
      90);
  INFO(both.out << both.err << read_file_whole(trial / "follow.1"));
  REQUIRE(both.code == kExitOk);
  for (int i = 1; i <= 3; ++i) {
    INFO(read_file_whole(trial / fmt::format("follow.{}", i)));
    CHECK_FALSE(fs::exists(trial / fmt::format("died.{}", i)));
    CHECK_THAT(read_file_whole(trial / fmt::format("follow.{}", i)), Contains("step 40 "));
  }

  // Makes a checkpoint whose file vanished before it was opened: it is listed, with its manifest.
  const std::string folder = trial.run() + "/checkpoints/", last = folder + "step-00000040.h5";
  std::string manifest;
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename();
        name.starts_with("step-00000040.") && name != "step-00000040.h5")
      manifest = name;
  REQUIRE(!manifest.empty());
  write_file_whole(folder + "step-00000099" + manifest.substr(13), read_file_whole(folder + manifest) + "\n");
  fs::create_symlink("gone.h5", folder + "step-00000099.h5");
  fs::remove(trial.run() + "/evaluation.jsonl");
  const Outcome one = trial.echelon({"eval", "results/trial", "--follow", "--every", "0.02", "--threads", "1"});
  INFO(one.out << one.err);
  CHECK(one.code == kExitOk);
  CHECK_THAT(one.out, Contains("step-00000099.h5: removed by the run before it was read") && Contains("step 40 "));
}

}  // namespace echelon::test
