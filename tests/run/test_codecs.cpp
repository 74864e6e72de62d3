// Runs whose gradients are coded: resumed to the same bits, taken up by other numbers of ranks, and what they record.
#include <catch2/catch.hpp>

#include "tests/run/trial.hpp"

namespace echelon {
namespace {

std::vector<double> values(const test::Trial& trial) {
  return test::checkpoint_values(trial.run() + "/checkpoints/step-00000051.h5", "");
}

TEST_CASE("a run with a codec resumes to the same bits, residuals and thresholds included", "[run][slow]") {
  const std::string codec = GENERATE(as<std::string>(), "bf16", "int8", "threshold");
  const test::Trial whole, cut;
  const std::string coded = "exchange.codec=" + codec, buckets = "exchange.bucket_mb=0.01";
  REQUIRE(whole.train(2, {coded, buckets}).code == 0);
  REQUIRE(cut.train(2, {coded, buckets, "train.steps=23"}).code == 0);
  const test::Outcome resumed = cut.train(2, {coded, buckets});
  INFO(resumed.out << resumed.err);
  REQUIRE(resumed.code == 0);
  CHECK_THAT(resumed.out, Catch::Contains("from step 23:"));
  CHECK(values(cut) == values(whole));
}

TEST_CASE("servers: a coded run resumes to the same bits", "[run][slow]") {
  const std::string codec = GENERATE(as<std::string>(), "fp16", "onebit", "topk", "threshold");
  const test::Trial whole, cut;
  const test::Sets sets = {"exchange.strategy=server", "exchange.codec=" + codec, "exchange.bucket_mb=0.01"};
  test::Sets first = sets;
  first.push_back("train.steps=23");
  REQUIRE(whole.train(2, sets).code == 0);
  REQUIRE(cut.train(2, first).code == 0);
  const test::Outcome resumed = cut.train(2, sets);
  INFO(resumed.out << resumed.err);
  REQUIRE(resumed.code == 0);
  CHECK_THAT(resumed.out, Catch::Contains("from step 23:"));
  CHECK(values(cut) == values(whole));
}

TEST_CASE("servers: a coded run goes on with another number of ranks and still learns", "[run]") {
  const std::string codec = GENERATE(as<std::string>(), "int8", "threshold");
  const test::Trial trial;
  const test::Sets sets = {"exchange.strategy=server", "exchange.codec=" + codec, "evaluate.every_epochs=0"};
  for (const auto& [ranks, steps] : {std::pair{2, 10}, {3, 20}, {1, 51}}) {
    test::Sets more = sets;
    more.push_back("train.steps=" + std::to_string(steps));
    const test::Outcome run = trial.train(ranks, more);
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    if (ranks == 3) CHECK_THAT(run.out, Catch::Contains("resuming on 3 replicas a run of 2 replicas"));
    if (ranks == 3) CHECK_THAT(run.out, Catch::Contains("coded as " + codec));
  }
  CHECK(trial.summary()["test_accuracy"].get<double>() > 0.85);
}

TEST_CASE("a run with a codec goes on with another number of ranks and still learns", "[run][slow]") {
  const std::string codec = GENERATE(as<std::string>(), "onebit", "topk");
  const test::Trial trial;
  const std::string coded = "exchange.codec=" + codec;
  REQUIRE(trial.train(2, {coded, "train.steps=10"}).code == 0);
  const test::Outcome more = trial.train(3, {coded, "train.steps=20"});
  INFO(more.out << more.err);
  REQUIRE(more.code == 0);
  CHECK_THAT(more.out, Catch::Contains("resuming on 3 replicas a run of 2 replicas"));
  const test::Outcome alone = trial.train(1, {coded});
  INFO(alone.out << alone.err);
  REQUIRE(alone.code == 0);
  CHECK(trial.summary()["test_accuracy"].get<double>() > 0.85);
}

TEST_CASE("records say what a codec did", "[run]") {
  const test::Trial trial;
  const test::Outcome run = trial.train(
      2, {"exchange.codec=threshold", "exchange.density=0.02", "train.steps=12", "evaluate.every_epochs=0"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, Catch::Contains("all-gather of messages coded as threshold") && Catch::Contains("threshold: ") &&
                          Catch::Contains("times fewer bytes"));
  int rows = 0;
  for (const auto& row : trial.metrics()) {
    if (row["type"] != "step" || !row.contains("codec")) continue;  // of the first, nothing has arrived when it ends
    const auto& codec = row["codec"];
    ++rows;
    CHECK(codec["bytes_after"].get<double>() < codec["bytes_before"].get<double>() / 12);
    CHECK(codec["tau"].get<double>() > 0);
    CHECK(codec["density"].get<double>() > 0);
    CHECK(codec["residual_norm"].get<double>() > 0);
  }
  CHECK(rows >= 10);
  const auto summary = trial.summary();
  CHECK(summary["codec"] == "threshold");
  CHECK(summary["formula_bytes_per_step"].is_null());
  // What all ranks sent; statistics travel beside the codec, exactly.
  const double wire = summary["wire_bytes_per_step"].get<double>() * 12;
  const double coded = 2 * summary["coded"]["bytes_after"].get<double>();
  CHECK(wire >= coded);
  CHECK(wire < 2 * coded);
}

}  // namespace
}  // namespace echelon
