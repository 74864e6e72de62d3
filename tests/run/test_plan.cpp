// `echelon plan` by the real program: from a run, and from a described step.
#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "report/writers/plot.hpp"
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
  CHECK(made["plans"].size() == 1 + 7 + 8);  // every other all-reduce with a plan, every other strategy
  REQUIRE(made["points"].size() == 1);
  CHECK(made["points"][0]["calibrates"] == true);
  CHECK(made["points"][0]["predicted_s"].get<double>() ==
        Approx(made["points"][0]["measured_s"].get<double>()).epsilon(0.15));
  CHECK_THAT(outcome.out, Catch::Contains("Beside what was measured") && Catch::Contains("Knee:"));
  CHECK_THAT(read_file_whole(trial / "plans/trial.md"), Catch::Contains("| replicas |"));
  if (can_draw())
    CHECK_THAT(read_file_whole(trial / "plans/trial.svg"),
               Catch::Contains("<svg") && Catch::Contains("predicted: ") && Catch::Contains("measured: "));
}

TEST_CASE("plan refuses what it cannot predict from", "[plan]") {
  const Trial trial;
  const auto refused = [&](std::vector<std::string> words, const std::string& why) {
    const Outcome outcome = plan(trial, std::move(words));
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == kExitConfig);
    CHECK_THAT(outcome.err, Catch::Contains(why));
  };
  refused({}, "no step: --from RUN");
  refused({"--from", "nowhere"}, "nowhere: no such folder");
  refused({"--step", "samples_per_s=10", "--network", "1gbti"}, "did you mean '1gbit'");
  refused({"--step", "samples_per_s=10", "--scaling", "week"}, "weak or strong");
  refused({"--step", "samples_per_s=10", "--compare", "codes"}, "did you mean 'codecs'");
  refused({"--step", "samples_per_s=10", "--replicas", "8...9"}, "--replicas 8...9");
}

}  // namespace echelon::test
