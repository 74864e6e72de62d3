// SPDX-License-Identifier: Apache-2.0
// Checks that a run learns, and what it leaves behind and prints.
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/random.hpp"
#include "tests/support/skip.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;

TEST_CASE("training on 1 and 2 ranks learns, and leaves its records", "[run][slow]") {
  const test::Trial trial;
  const int ranks = GENERATE(0, 1, 2);
  const test::Outcome outcome = trial.train(ranks);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  const nlohmann::json summary = trial.summary();
  CHECK(summary["test_accuracy"].get<double>() > 0.9);
  CHECK(summary["ranks"] == std::max(1, ranks));
  CHECK(summary["steps"] == 51);
  CHECK(summary["epochs"] == 3);
  CHECK(summary["state"] == "finished");
  CHECK(summary["peak_rss_mb"].size() == static_cast<std::size_t>(std::max(1, ranks)));
  CHECK(summary["timed_steps"] == 50);
  CHECK(summary["wire_bytes_per_step"] == summary["formula_bytes_per_step"]);
  CHECK((summary["wire_bytes_per_step"] > 0) == (ranks == 2));
  CHECK(summary["start_to_first_step_s"] > 0);
  const auto split = summary["time_split_s"];
  double parts = 0;
  for (const char* part :
       {"data", "forward", "backward", "split", "exchange", "optimizer", "evaluation", "checkpoint", "hooks", "other"})
    parts += split[part].get<double>();
  CHECK(parts == Approx(split["total"].get<double>()));
  CHECK(split["evaluation"] > 0);
  CHECK(split["checkpoint"] > 0);
  CHECK(summary["samples_per_s_overall"] > 0);
  CHECK(summary["samples_per_s"]["median"] == summary["samples_per_s_overall"]);
  CHECK(summary["samples_per_s_overall"] ==
        Approx(summary["rate_samples"].get<double>() / summary["rate_s"].get<double>()));
  CHECK(summary["backward_flops"] > summary["forward_flops"]);
  CHECK(summary["samples_never"] == 0);  // 800 samples in 17 steps of 48
  CHECK(summary["samples_once"] == 784);
  CHECK(summary["samples_repeated"] == 16);
  CHECK_THAT(outcome.out + outcome.err, Catch::Contains("samples of an epoch: 784 once, 16 more often, 0 never"));
  CHECK(!summary.contains("peak_flops"));  // run.measure_peak asks for it
  CHECK(fs::exists(trial.attempt() + "/wire.json") == (ranks == 2));
  if (ranks == 2) {
    const auto wire = nlohmann::json::parse(read_file_whole(trial.attempt() + "/wire.json"));
    const double both = wire["bytes"][0][1].get<double>() + wire["bytes"][1][0].get<double>();
    CHECK(both >= 51 * summary["wire_bytes_per_step"].get<double>());
    CHECK(summary["card_peak"][0] >= summary["card_mean"][0]);
    CHECK(summary["card_mean"][1] > 0);
  }

  CHECK(trial.status()["state"] == "finished");
  CHECK(trial.status()["checkpoint"] == "checkpoints/step-00000051.h5");
  for (const char* name : {"/config.toml", "/run.log", "/metrics.jsonl", "/summary.json", "/status.json"})
    CHECK(fs::exists(trial.attempt() + name));
  for (const auto& entry : fs::directory_iterator(trial.attempt()))  // no rank had anything to report
    CHECK(entry.path().extension() != ".err");
  for (const auto& provenance : {summary["provenance"], trial.status()["provenance"]}) {
    CHECK(!provenance["commit"].get<std::string>().empty());
    CHECK("run-" + provenance["config_hash"].get<std::string>() == fs::path(trial.run()).filename().string());
    CHECK(provenance["hosts"].size() == static_cast<std::size_t>(std::max(1, ranks)));
    CHECK(provenance["devices"].size() == provenance["hosts"].size());
    CHECK_THAT(provenance["mpi"].get<std::string>(), Catch::Contains("MPI"));
    CHECK(provenance["seed"] == 7);
    CHECK(provenance.contains("job_id"));
    CHECK_THAT(provenance["command"].get<std::string>(), Catch::Contains("train trial.toml"));
  }
  CHECK(trial.metrics().size() == 51 + 3);
  CHECK(trial.leftovers().empty());
  const std::string head = outcome.out.substr(0, outcome.out.find("epoch 1/3"));
  CHECK(std::count(head.begin(), head.end(), '\n') < 20);
  for (const char* word :
       {"ranks", "mesh", "model", "batch", "strong scaling", "data", "exchange", "device", "results"})
    CHECK_THAT(head, Catch::Contains(word));
}

TEST_CASE("the digits are learned on 1 and 2 ranks from the shipped config", "[run][slow]") {
  const fs::path root = fs::absolute(test::echelon_binary()).parent_path().parent_path().parent_path().parent_path();
  if (test::skip_without(fs::exists(root / "data/digits/train"), test::Lacks::build,
                         "needs data/digits beside the build folder"))
    return;
  const test::Trial trial;
  test::Command command = test::mpirun(GENERATE(1, 2), {"train", "configs/smoke/digits.toml", "--set", "name=trial",
                                                        "--set", "run.results=\"" + (trial / "results") + "\""});
  command.cwd = root.string();
  command.limit_s = 120;
  const test::Outcome outcome = test::run_process(command);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(trial.summary()["test_accuracy"].get<double>() >= 0.97);
}

TEST_CASE("the experiment in the README trains as it stands", "[run][slow]") {
  const fs::path root = fs::absolute(test::echelon_binary()).parent_path().parent_path().parent_path().parent_path();
  if (test::skip_without(fs::exists(root / "README.md"), test::Lacks::build,
                         "needs the repository around the build folder"))
    return;
  const std::string text = read_file_whole((root / "README.md").string());
  const auto first = text.find("```toml\n") + 8;
  const test::Trial trial;
  write_file_whole(trial / "mine.toml", text.substr(first, text.find("```", first) - first));
  test::Command command = test::mpirun(2, {"train", trial / "mine.toml", "--set", "train.epochs=1", "--set",
                                           "run.results=\"" + (trial / "results") + "\""});
  command.cwd = root.string();
  const test::Outcome outcome = test::run_process(command);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK(trial.summary("mine")["test_accuracy"].get<double>() > 0.3);
}

TEST_CASE("a paced run is marked in its records and claims nothing learned", "[run][slow]") {
  const test::Trial trial;
  const test::Outcome outcome = trial.train(2, {"device.kind=paced"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(trial.summary()["paced"] == true);
  CHECK(trial.summary()["test_accuracy"].is_null());
  CHECK(trial.summary()["train_loss"].is_null());
  for (const auto& row : trial.metrics()) CHECK(row[row["type"] == "step" ? "loss" : "train_loss"].is_null());
  CHECK_THAT(outcome.out, !Catch::Contains("train loss") && !Catch::Contains("test loss"));
  CHECK_THAT(outcome.out, Catch::Contains("PACED"));
}

TEST_CASE("a finished run ends at once and says so; more epochs go on from it", "[run][slow]") {
  const test::Trial trial;
  REQUIRE(trial.train(0).code == 0);
  const test::Outcome again = trial.train(0);
  CHECK(again.code == 0);
  CHECK_THAT(again.out, Catch::Contains("already finished on 1 rank: 51 steps") && Catch::Contains("to train again"));
  CHECK(trial.attempts() == 1);

  const test::Outcome longer = trial.train(0, {"train.epochs=4"});
  INFO(longer.out << longer.err);
  CHECK(longer.code == 0);
  CHECK_THAT(longer.out, Catch::Contains("from step 51"));
  CHECK(trial.summary()["steps"] == 68);

  const test::Outcome anew = trial.train(0, {"run.restart=never"});
  INFO(anew.err);
  CHECK(anew.code == 0);
  CHECK(trial.attempts() == 3);
  CHECK(trial.summary()["steps"] == 51);
  CHECK(fs::exists(trial.run() + "/checkpoints-before-03/latest"));
}

TEST_CASE("the effective config runs again and is the same run", "[run][slow]") {
  const test::Trial trial;
  REQUIRE(trial.train(0, {"train.epochs=1"}).code == 0);
  fs::copy_file(trial.attempt() + "/config.toml", trial / "trial.toml", fs::copy_options::overwrite_existing);
  const test::Outcome again = trial.train(0);
  INFO(again.out << again.err);
  CHECK(again.code == 0);
  CHECK_THAT(again.out, Catch::Contains("already finished"));
}

// oneDNN's loops assume that they get all threads they ask for: with fewer, sums were wrong, and training hung.
TEST_CASE("OpenMP's own limits leave figures as they are, or are refused", "[run]") {
  const test::Trial trial;
  const test::Outcome evaluated = trial.train(0, {"train.epochs=1"}),
                      plain = trial.echelon({"eval", trial.run(), "test"});
  INFO(evaluated.out << evaluated.err << plain.out << plain.err);
  REQUIRE(plain.code == 0);
  const auto figures = [](const std::string& out) {
    const std::size_t begin = out.find("\nloss ");
    return begin == std::string::npos ? "" : out.substr(begin, out.find("\nspeed ") - begin);
  };
  for (const auto& [variable, value, threads] :
       {std::tuple{"OMP_THREAD_LIMIT", "1", "0"}, {"OMP_MAX_ACTIVE_LEVELS", "0", "0"}, {"OMP_DYNAMIC", "true", "4"}}) {
    const test::Outcome limited = test::run_echelon({"eval", trial.run(), "test", "--threads", threads},
                                                    {.cwd = trial / "", .env = {{variable, value}}});
    INFO(variable << "=" << value << '\n' << limited.out << limited.err);
    CHECK(limited.code == 0);
    CHECK(figures(limited.out) == figures(plain.out));
  }
  const test::Outcome refused = trial.train(0, {"device.threads=2"}, {{"OMP_THREAD_LIMIT", "1"}});
  CHECK(refused.code == kExitEnvironment);
  CHECK_THAT(refused.err, Catch::Contains("OpenMP may start only 1 thread") && Catch::Contains("device.threads = 2"));
}

TEST_CASE("f64: 2 ranks end with the weights of 1", "[run][slow]") {
  const test::Trial trial;
  const test::Sets sets = {"device.kind=reference", "device.dtype=f64", "train.steps=6", "checkpoint.every_steps=0",
                           "batch.global=12"};
  const auto trained = [&](const char* name, int ranks, const test::Sets& more) {
    return test::train_run(trial, name, {{ranks, more}}, sets);
  };
  const test::TrainedRun one = trained("one", 0, {});
  REQUIRE(one.values("weights/").size() > 10000);
  check_equal(trained("two", 2, {}), one, {.within = 1e-8, .evaluation = true});
  check_equal(trained("naive", 2, {"exchange.algorithm=naive", "batch.accumulation=2"}), one, {.within = 1e-8});
  check_equal(trained("library", 2, {"exchange.algorithm=mpi"}), one, {.within = 1e-8});
  check_equal(trained("shares", 2, {"batch.shares=[2, 1]"}), one, {.within = 1e-8});
  // One rank takes the samples of both; files give other samples than records drawn over all of them.
  const test::TrainedRun files = trained("files", 2, {"data.sharding=file"});
  check_equal(trained("standin", 0, {"data.sharding=file", "data.as_replicas=2"}), files, {.within = 1e-8});
  CHECK(test::relative_distance(files.values("weights/"), one.values("weights/")) > 1e-6);
}

}  // namespace
}  // namespace echelon
