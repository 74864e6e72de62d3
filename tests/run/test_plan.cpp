// SPDX-License-Identifier: Apache-2.0
// `echelon plan` by the real program: from a run, and from a step that is described.
#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "config/traits/strategies.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

using nlohmann::json;

Outcome plan(const Trial& trial, std::vector<std::string> words) {
  words.insert(words.begin(), {"plan", "trial.toml"});
  return trial.echelon(words);
}

}  // namespace

TEST_CASE("plan predicts the run that it was calibrated by, and more replicas", "[plan]") {
  const Trial trial;
  REQUIRE(trial.train(0, {"device.kind=paced", "device.paced_gflops=0.05", "train.steps=12"}).code == kExitOk);
  const Outcome outcome =
      plan(trial, {"--from", "results", "--replicas", "1,8,1000", "--compare", "algorithms,strategies", "--network",
                   "1gbit", "--out", "plans", "--name", "trial"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  const json made = json::parse(read_file_whole(trial / "plans/trial.json"));
  const json& rows = made["plans"][0]["rows"];
  REQUIRE(rows.size() == 3);
  CHECK(rows[0]["efficiency"].get<double>() == Approx(1));
  CHECK(rows[2]["step_s"].get<double>() > rows[1]["step_s"].get<double>());
  // Every other all-reduce that has a plan, and every other strategy.
  CHECK(made["plans"].size() == 1 + 7 + std::size(kStrategies) - 1);
  REQUIRE(made["points"].size() == 1);
  CHECK(made["points"][0]["calibrates"] == true);
  CHECK(made["points"][0]["predicted_s"].get<double>() ==
        Approx(made["points"][0]["measured_s"].get<double>()).epsilon(0.15));
  CHECK_THAT(outcome.out, Catch::Contains("Compared with measurements") && Catch::Contains("Knee:"));
  CHECK_THAT(read_file_whole(trial / "plans/trial.md"), Catch::Contains("| replicas |"));
  CHECK_THAT(read_file_whole(trial / "plans/trial.svg"),
             Catch::Contains("<svg") && Catch::Contains("predicted: ") && Catch::Contains("measured: "));
}

TEST_CASE("plan takes a report for its runs, and the speed of a codec from a run with it", "[plan]") {
  const Trial trial;
  const Sets sets = {"device.kind=paced", "device.paced_gflops=0.05", "train.steps=12"};
  REQUIRE(trial.train(1, sets).code == kExitOk);
  REQUIRE(trial.train(2, with(sets, {"exchange.codec=onebit", "name=coded"})).code == kExitOk);
  REQUIRE(trial.echelon({"report", "results", "--out", "written", "--name", "all"}).code == kExitOk);
  const auto planned = [&](const std::string& from) {
    const Outcome outcome = plan(trial, {"--from", from, "--replicas", "2,4", "--compare", "codecs", "--network",
                                         "100gbit", "--out", "plans", "--set", "exchange.overlap=none"});
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    return json::parse(read_file_whole(trial / "plans/plan.json"));
  };
  const json of_report = planned("written/all.json"), of_folder = planned("results");
  CHECK(of_report == of_folder);
  CHECK(of_report["points"].size() == 2);
  // The codec's time follows from the speed that its own run measured, some GB/s at most.
  for (const json& made : of_report["plans"]) {
    const double coded_s = made["rows"][0]["codec_s"];
    INFO(made["exchange"]);
    CHECK((coded_s > 0) == (made["exchange"] != "synchronous, ring"));
    CHECK(made["rows"][0]["memory_bytes"].get<double>() > 3 * 4 * 38'282);
  }
  // Without that run the plan assumes a speed.
  const auto coded_s = [](const json& made) {
    for (const json& plan : made["plans"])
      if (plan["exchange"] == "synchronous, ring, onebit") return plan["rows"][0]["codec_s"].get<double>();
    return -1.0;
  };
  CHECK(coded_s(planned("results/trial")) > 0);
  CHECK(coded_s(planned("results/trial")) != coded_s(of_folder));
  std::filesystem::remove_all(trial / "results");
  const Outcome gone = plan(trial, {"--from", "written/all.json"});
  CHECK(gone.code == kExitData);
  CHECK_THAT(gone.err, Catch::Contains("all.json: 2 of its runs were not found"));
}

TEST_CASE("plan prices meshes of ranks that are not there, with their memory", "[plan]") {
  const Trial trial;
  const auto meshes = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"--step",     "samples=64,forward_ms=10,backward_ms=20",
                                      "--replicas", "4,64,1000",
                                      "--compare",  "meshes",
                                      "--out",      "plans",
                                      "--set",      "exchange.overlap=none"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = plan(trial, words);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    CHECK_THAT(outcome.out, Catch::Contains("Replicas or parts of the model") &&
                                Catch::Contains("meshes are listed for 2 to 64 ranks"));
    return json::parse(read_file_whole(trial / "plans/plan.json"))["meshes"];
  };
  const json apart = meshes({"--network", "10gbit"});
  REQUIRE(!apart.empty());
  for (const json& mesh : apart) CHECK(mesh["mesh"].get<std::string>().starts_with("data "));  // groups fit no host
  const json rows = meshes({"--network", "100mbit,ranks_per_host=4,inside=nvlink"});
  CHECK(rows[0]["verdict"] == "fastest");
  CHECK(rows[0]["ranks"] == 4);
  double whole = 0, part = 0, before = 0;
  for (const json& mesh : rows) {
    CHECK((mesh["verdict"] == "fastest" || mesh["samples_per_s"].get<double>() <= before));
    before = mesh["samples_per_s"];
    if (mesh["ranks"] != 4) continue;
    (mesh["mesh"] == "data 4" ? whole : part) = mesh["memory_bytes"];
  }
  CHECK(whole > 0);
  CHECK(part > 0);
  const Outcome limited = plan(trial, {"--step", "samples_per_s=1000", "--replicas", "4", "--compare", "meshes",
                                       "--set", "device.memory_limit_mb=0.01"});
  CHECK_THAT(limited.out, Catch::Contains("too large") && !Catch::Contains("fastest"));
}

TEST_CASE("plan prices hosts as the config has it, unless --node-hour says otherwise", "[plan]") {
  const Trial trial;
  const auto planned = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"--step", "samples_per_s=1000", "--replicas", "1", "--compare", "none", "--out",
                                      "plans"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = plan(trial, words);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    return outcome.out;
  };
  CHECK_THAT(planned({}), !Catch::Contains("EUR"));
  const Sets cost = {"--set", "cost.node_hour=36", "--set", "cost.currency=CHF"};
  CHECK_THAT(planned(cost), Catch::Contains("CHF / M samples") && Catch::Contains("10.00"));
  const json made = json::parse(read_file_whole(trial / "plans/plan.json"));
  CHECK(made["cost"] == json{{"node_hour", 36.0}, {"currency", "CHF"}});
  CHECK_THAT(planned(with(cost, {"--node-hour", "72"})),
             Catch::Contains("CHF / M samples") && Catch::Contains("20.00"));
  CHECK_THAT(planned(with(cost, {"--node-hour", "0"})), !Catch::Contains("CHF"));
  CHECK_THAT(planned({"--node-hour", "72"}), Catch::Contains("EUR / M samples") && Catch::Contains("20.00"));
}

TEST_CASE("plan refuses what it cannot predict from", "[plan]") {
  const Trial trial;
  const auto refused = [&](std::vector<std::string> words, const std::string& why) {
    const Outcome outcome = plan(trial, std::move(words));
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == kExitConfig);
    CHECK_THAT(outcome.err, Catch::Contains(why));
  };
  refused({}, "no step was given: --from RUN");
  refused({"--from", "nowhere"}, "nowhere: no such folder");
  refused({"--step", "samples_per_s=10", "--network", "1gbti"}, "did you mean '1gbit'");
  refused({"--step", "samples_per_s=10", "--scaling", "week"}, "weak or strong");
  refused({"--step", "samples_per_s=10", "--compare", "codes"}, "did you mean 'codecs'");
  refused({"--step", "samples_per_s=10", "--compare", "meshes", "--set", "parallel.pipeline=2"}, "--compare meshes");
  refused({"--step", "samples_per_s=10", "--replicas", "8...9"}, "--replicas 8...9");
}

}  // namespace echelon::test
