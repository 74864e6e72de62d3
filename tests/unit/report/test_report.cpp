// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "config/parse.hpp"
#include "report/record.hpp"
#include "report/scaling.hpp"
#include "report/writers/writers.hpp"
#include "tests/support/process.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/report/written.hpp"

namespace echelon {
namespace {

using test::markdown_of;
using test::TempFolder;
using test::write_attempt;
using test::Written;

}  // namespace

TEST_CASE("a record is read back field by field", "[report]") {
  TempFolder folder;
  write_attempt(folder / "01", {.ranks = 2, .rate = 1234.5});
  const RunRecord run = read_run(folder / "01");
  CHECK(run.ranks == 2);
  CHECK(run.parameters == 421642);
  CHECK(run.batch_per_replica == std::vector<std::int64_t>{32, 32});
  CHECK(run.samples_per_s.median == 1234.5);
  CHECK(run.timed_steps == 340);
  CHECK(run.time_split_s.backward_s == 3.3);
  CHECK(run.wire_bytes_per_step == 2 * 1686568);
  CHECK(std::isnan(run.test_loss));
  CHECK(run.test_accuracy == 0.975);
  CHECK(largest(run.peak_rss_mb) == 120.5);
  CHECK(run.provenance.hosts == std::vector<std::string>{"n1"});
  CHECK(run.provenance.command_line == "echelon train a.toml");
}

TEST_CASE("the same global batch on more ranks is a strong study", "[report]") {
  TempFolder folder;
  write_attempt(folder / "run-a/01", {.ranks = 1, .rate = 1000});
  write_attempt(folder / "run-a/02", {.ranks = 2, .rate = 1800});
  write_attempt(folder / "run-a/03", {.ranks = 4, .rate = 2800});
  const ScalingReport report = make_scaling(read_runs({folder.path()}));
  REQUIRE(report.studies.size() == 1);
  const Study& study = report.studies[0];
  CHECK(study.kind == StudyKind::strong);
  REQUIRE(study.rows.size() == 3);
  CHECK(study.rows[1].speed_up == Approx(1.8));
  CHECK(study.rows[2].speed_up == Approx(2.8));
  CHECK(study.rows[2].efficiency == Approx(0.7));
  CHECK(study.rows[0].rate.low == Approx(900));
  CHECK(study.rows[0].rate.high == Approx(1100));
  CHECK(study.notes.empty());
  const std::string text = markdown_of(report);
  CHECK(text.find("Strong scaling: cnn_32_64, global batch 64") != std::string::npos);
  CHECK(text.find("1.80x") != std::string::npos);
  CHECK(text.find("90.0 %") != std::string::npos);
  CHECK(text.find("97.50 %") != std::string::npos);
}

TEST_CASE("servers on ranks of their own are rows of their own, beside the workers that they serve", "[report]") {
  TempFolder folder;
  write_attempt(folder / "run-a/01", {.ranks = 1, .rate = 1000});
  write_attempt(folder / "run-a/02", {.ranks = 2, .rate = 1800});
  write_attempt(folder / "run-a/03", {.ranks = 2, .rate = 1500, .exchange = {.server = {.ranks = 1}}, .servers = 1});
  const ScalingReport report = make_scaling(read_runs({folder.path()}));
  REQUIRE(report.studies.size() == 1);
  REQUIRE(report.studies[0].rows.size() == 3);
  CHECK(report.studies[0].rows[2].servers == 1);
  CHECK(report.studies[0].rows[2].speed_up == Approx(1.5));
  CHECK(markdown_of(report).find("2 workers + 1 server") != std::string::npos);
}

TEST_CASE("the same batch a rank is a weak study, also by two configs", "[report]") {
  TempFolder folder;
  write_attempt(folder / "a/01", {.ranks = 1, .global = 64, .rate = 1000, .weak = true});
  write_attempt(folder / "a/02", {.ranks = 2, .global = 128, .rate = 1900, .weak = true});
  write_attempt(folder / "b/01", {.ranks = 4, .global = 256, .rate = 3600});
  const ScalingReport report = make_scaling(read_runs({folder / "a", folder / "b", folder / "a"}));
  REQUIRE(report.studies.size() == 1);
  const Study& study = report.studies[0];
  CHECK(study.kind == StudyKind::weak);
  REQUIRE(study.rows.size() == 3);
  CHECK(study.rows[2].efficiency == Approx(0.9));
  CHECK(study.title == "Weak scaling: cnn_32_64, batch 64 a rank");
  CHECK(report.counted.size() == 3);
}

TEST_CASE("one run on 1 rank serves a strong and a weak study", "[report]") {
  TempFolder folder;
  write_attempt(folder / "a/01", {.ranks = 1, .global = 64, .rate = 1000});
  write_attempt(folder / "a/02", {.ranks = 2, .global = 64, .rate = 1500});
  write_attempt(folder / "b/01", {.ranks = 2, .global = 128, .rate = 1900});
  const ScalingReport report = make_scaling(read_runs({folder.path()}));
  REQUIRE(report.studies.size() == 2);
  CHECK(report.studies[0].kind == StudyKind::strong);
  CHECK(report.studies[0].rows[1].efficiency == Approx(0.75));
  CHECK(report.studies[1].kind == StudyKind::weak);
  CHECK(report.studies[1].rows[1].efficiency == Approx(0.95));
}

TEST_CASE("without a run on 1 rank the smallest is the baseline, and the report says so", "[report]") {
  TempFolder folder;
  write_attempt(folder / "a/01", {.ranks = 2, .rate = 1000});
  write_attempt(folder / "a/02", {.ranks = 4, .rate = 1500});
  const ScalingReport report = make_scaling(read_runs({folder.path()}));
  REQUIRE(report.studies.size() == 1);
  CHECK(report.studies[0].baseline_ranks == 2);
  CHECK(report.studies[0].rows[1].speed_up == Approx(1.5));
  CHECK(report.studies[0].rows[1].efficiency == Approx(0.75));
  CHECK(markdown_of(report).find("relative to the run on 2 ranks") != std::string::npos);
}

TEST_CASE("more ranks that are slower are reported as worse", "[report]") {
  TempFolder folder;
  write_attempt(folder / "a/01", {.ranks = 1, .rate = 1000});
  write_attempt(folder / "a/02", {.ranks = 2, .rate = 800});
  CHECK(markdown_of(make_scaling(read_runs({folder.path()})))
            .find("2 ranks are slower than 1: distribution costs more") != std::string::npos);
}

TEST_CASE("repetitions make one row: median, range, spread of the accuracy over seeds", "[report]") {
  TempFolder folder;
  write_attempt(folder / "a/01", {.ranks = 1, .rate = 1000, .accuracy = 0.97, .seed = 1});
  write_attempt(folder / "b/01", {.ranks = 1, .rate = 1200, .accuracy = 0.99, .seed = 2});
  write_attempt(folder / "c/01", {.ranks = 1, .rate = 1050, .accuracy = 0.98, .seed = 3});
  write_attempt(folder / "a/02", {.ranks = 2, .rate = 2000});
  const ScalingReport report = make_scaling(read_runs({folder.path()}));
  REQUIRE(report.studies.size() == 1);
  const ScalingRow& row = report.studies[0].rows[0];
  CHECK(row.attempts == 3);
  CHECK(row.rate.median == Approx(1050));
  CHECK(row.rate.low == Approx(1000));
  CHECK(row.rate.high == Approx(1200));
  CHECK(markdown_of(report).find("98.00 % (97.00 to 99.00)") != std::string::npos);
}

TEST_CASE("failed, stopped and half-written attempts are listed and not counted", "[report]") {
  TempFolder folder;
  write_attempt(folder / "a/01", {.ranks = 1, .rate = 1000});
  write_attempt(folder / "a/02", {.ranks = 2, .rate = 1800});
  write_attempt(folder / "a/03", {.ranks = 4, .rate = 9999, .state = "failed"});
  write_attempt(folder / "a/04", {.ranks = 4, .rate = 9999, .state = "stopped"});
  make_folders(folder / "a/05");
  write_file_whole(folder / "a/05/status.json", R"({"state":"running","exit_code":0,"reason":"","step":0})");
  const ScalingReport report = make_scaling(read_runs({folder.path()}));
  REQUIRE(report.studies.size() == 1);
  CHECK(report.studies[0].rows.size() == 2);
  REQUIRE(report.left_out.size() == 3);
  CHECK(report.left_out[0].reason == "loss is not finite at step 3");
  CHECK(report.left_out[1].state == "stopped");
  CHECK(report.left_out[2].reason == "no summary was written");
  const std::string text = markdown_of(report);
  CHECK(text.find("Found but not counted") != std::string::npos);
  CHECK(text.find("9999") == std::string::npos);
}

TEST_CASE("paced runs are marked in every table and report no loss", "[report]") {
  TempFolder folder;
  write_attempt(folder / "a/01", {.ranks = 1, .rate = 1000, .paced = true});
  write_attempt(folder / "a/02", {.ranks = 8, .rate = 7000, .paced = true});
  write_attempt(folder / "b/01", {.ranks = 1, .rate = 500});  // a real run, which is never in one study with paced ones
  const ScalingReport report = make_scaling(read_runs({folder.path()}));
  REQUIRE(report.studies.size() == 2);
  const Study& study = report.studies[0];
  CHECK(study.paced);
  CHECK(study.title.find("(paced)") != std::string::npos);
  CHECK(rate_table(study).text().find("paced") != std::string::npos);
  CHECK(time_table(study).text().find("paced") != std::string::npos);
  CHECK(cost_table(study).text().find("paced") != std::string::npos);
  CHECK(rate_table(study).text().find("97.50") == std::string::npos);
  CHECK(write_csv(report, {}).find("\"Strong scaling (paced): cnn_32_64, global batch 64\",") != std::string::npos);
  CHECK(report.studies[1].kind == StudyKind::single);
  CHECK_FALSE(report.studies[1].paced);
}

TEST_CASE("runs of unlike meshes, algorithms and codecs are rows of their own, told apart in every table", "[report]") {
  ExchangeConfig halves;
  halves.codec = "bf16";
  TempFolder folder;
  write_attempt(folder / "a/01", {.ranks = 1, .rate = 1000});
  write_attempt(folder / "a/02", {.ranks = 4, .rate = 3000});
  write_attempt(folder / "a/03", {.ranks = 4, .rate = 2000, .pipeline = 2});
  write_attempt(folder / "a/04", {.ranks = 4, .rate = 2100, .pipeline = 2, .hash = "11bb11bb11bb"});
  write_attempt(folder / "a/05", {.ranks = 4, .rate = 1500, .pipeline = 4});
  write_attempt(folder / "a/06", {.ranks = 4, .rate = 2900, .algorithm = "tree"});
  write_attempt(folder / "b/01", {.ranks = 4, .rate = 3100, .exchange = halves});
  const ScalingReport report = make_scaling(read_runs({folder.path()}));
  REQUIRE(report.studies.size() == 2);
  const Study& study = report.studies[0];
  REQUIRE(study.rows.size() == 5);
  CHECK(report.studies[1].kind == StudyKind::single);  // one batch size makes no weak study
  CHECK(study.rows[1].attempts == 1);
  CHECK(study.rows[1].rate.median == 3000);
  CHECK(study.rows[3].attempts == 2);  // configs of two hashes have the same mesh
  CHECK(study.rows[3].rate.median == 2050);
  CHECK(study.rows[4].speed_up == Approx(1.5));
  for (const Table& table : {rate_table(study), time_table(study), cost_table(study)}) {
    const std::string text = table.text();
    for (const char* words :
         {"data 4 ", "data 2 x pipeline 2 (1f1b)", "data 1 x pipeline 4 (1f1b)", "synchronous, tree"})
      CHECK(text.find(words) != std::string::npos);
  }
  CHECK(rate_table(study).text().find("00aa00aa + 1") != std::string::npos);
  CHECK(cost_table(study).text().find("3.00 KiB") != std::string::npos);  // traffic inside replicas
  CHECK(time_table(study).text().find("75 %") != std::string::npos);      // share of the exchange that is hidden
  CHECK(time_table(study).text().find("2.00 ms") != std::string::npos);   // arrival skew
  CHECK(rate_table(report.studies[1]).text().find("bf16") != std::string::npos);
  const std::string csv = write_csv(report, {}), json = write_json(report, {});
  for (const char* name : {"exchange_hidden_s", "arrival_skew_s", "halo_bytes_per_step", "split_bytes_per_step"}) {
    CHECK(csv.find(name) != std::string::npos);
    CHECK(json.find(name) != std::string::npos);
  }
}

TEST_CASE("runs that differ in more than a study varies are not compared, and the report names the keys", "[report]") {
  TempFolder folder;
  for (const char* run : {"a", "b", "c"})
    write_attempt(folder / run + std::string("/01"), {.ranks = *run == 'a' ? 1 : 2});
  CHECK(make_scaling(read_runs({folder.path()})).warnings.empty());
  const std::string path = folder / "b/01/config.toml";
  write_file_whole(path, echo_config(load_config(path, {"optimizer.learning_rate=0.125", "batch.global=32"})));
  const ScalingReport report = make_scaling(read_runs({folder.path()}));
  REQUIRE(report.warnings.size() == 1);
  const std::string& warning = report.warnings.front();
  INFO(warning);
  CHECK(warning.find("2 runs of 'digits'") == 0);
  CHECK(warning.find("1 run of 'digits' (" + (folder / "b/01")) != std::string::npos);
  CHECK(warning.find("they differ in optimizer.learning_rate (0.01; 0.125)") != std::string::npos);
  CHECK(warning.find("batch.global") == std::string::npos);
}

TEST_CASE("the parts of a step's time sum to 100 percent", "[report]") {
  for (int round = 0; round < 200; ++round) {
    const auto draw = test::random_values(9, "split" + std::to_string(round));
    StepTimes times;
    double claimed = 0;
    for (std::size_t part = 0; part < kClaimedTimes.size(); ++part) {
      times.*kClaimedTimes[part].seconds = 1 + draw[part];
      claimed += 1 + draw[part];
    }
    times.total_s = claimed * (1 + std::max(0.0, draw[8]));
    const TimePercent percent = time_percent(times);
    int tenths = 0;
    for (const double part : percent) {
      CHECK(part >= 0);
      tenths += static_cast<int>(std::lround(part * 10));
    }
    CHECK(tenths == 1000);
    CHECK(percent[1] == Approx(100 * times.forward_s / times.total_s).margin(0.1));
  }
  CHECK(time_percent({}) == TimePercent{});
  // Time that no part claims is `other`.
  CHECK(time_percent({.total_s = 4, .data_wait_s = 1})[9] == 75);
}

TEST_CASE("the report's files appear together, with where they come from", "[report]") {
  TempFolder folder;
  write_attempt(folder / "a/01", {.ranks = 1, .rate = 1000});
  write_attempt(folder / "a/02", {.ranks = 2, .rate = 1800});
  const ScalingReport report = make_scaling(read_runs({folder / "a"}));
  const ReportSource source{"digits", "echelon report a", "2026-01-01 12:00", "0.1.0", "abc"};
  const auto paths = write_report(report, source, folder / "out/deep");
  REQUIRE(paths.size() == 3);
  const std::string markdown = read_file_whole(paths[0]), csv = read_file_whole(paths[1]),
                    json = read_file_whole(paths[2]);
  for (const char* words :
       {"echelon report a", "abc", "2026-01-01", "echelon train a.toml", "a CPU, 1 thread", "Open MPI"})
    CHECK(markdown.find(words) != std::string::npos);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  CHECK(json.find("\"efficiency\": 0.9") != std::string::npos);
}

TEST_CASE("folders without records and broken records are refused by name", "[report]") {
  TempFolder folder;
  CHECK_THROWS_WITH(read_runs({folder / "none"}), Catch::Contains("no such folder"));
  CHECK_THROWS_WITH(read_runs({folder.path()}), Catch::Contains("no attempt"));
  write_attempt(folder / "a/01", {});
  write_file_whole(folder / "a/01/summary.json", "{\"format\": \"echelon-summary\", ");
  CHECK_THROWS_AS(read_runs({folder.path()}), DataError);
  write_file_whole(folder / "a/01/summary.json", R"({"format":"echelon-summary","version":2,"ranks":"two"})");
  CHECK_THROWS_WITH(read_runs({folder.path()}), Catch::Contains("wrong type"));
  write_file_whole(folder / "a/01/summary.json", R"({"format":"other"})");
  CHECK_THROWS_WITH(read_runs({folder.path()}), Catch::Contains("not a summary of version 2"));
}

}  // namespace echelon
