// SPDX-License-Identifier: Apache-2.0
// study.json and study.csv are parsed back: their numbers must be those of the evidence.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "report/read_study.hpp"
#include "report/verdict.hpp"
#include "report/writers/study.hpp"
#include "report/writers/study_data.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/report/made_study.hpp"

namespace echelon {
namespace {

using nlohmann::json;

// Compares a number of the file with the evidence: an unknown one is null, or an empty cell.
void check_number(const json& value, double expected) {
  if (!std::isfinite(expected)) {
    CHECK(value.is_null());
    return;
  }
  REQUIRE(value.is_number());
  CHECK(value.get<double>() == Approx(expected).epsilon(1e-12));
}
void check_number(const std::string& cell, double expected) {
  if (!std::isfinite(expected)) {
    CHECK(cell.empty());
    return;
  }
  REQUIRE_FALSE(cell.empty());
  CHECK(std::stod(cell) == Approx(expected).epsilon(1e-9));
}
void check_spread(const json& value, const Spread& expected) {
  check_number(value.at("median"), expected.median);
  check_number(value.at("low"), expected.low);
  check_number(value.at("high"), expected.high);
}

// Splits a line into cells by RFC 4180.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      cells.back() += line[i++];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      cells.emplace_back();
    else
      cells.back() += line[i];
  }
  return cells;
}

std::vector<std::map<std::string, std::string>> rows_of(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> header = cells_of(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = cells_of(line);
    REQUIRE(cells.size() == header.size());
    auto& row = rows.emplace_back();
    for (std::size_t c = 0; c < cells.size(); ++c) CHECK(row.emplace(header[c], cells[c]).second);  // each heading once
  }
  return rows;
}

void check_repetition(const json& from, const Repetition& r) {
  CHECK(from["repeat"] == r.repeat);
  CHECK(from["seed"] == r.seed);
  CHECK(from["outcome"] == outcome_name(r.outcome));
  CHECK(from["code"] == r.code);
  CHECK(from["attempt"] == r.attempt);
  check_number(from["samples_per_s"], r.samples_per_s);
  check_number(from["samples"], r.samples);
  check_number(from["samples_to_target"], r.samples_to_target);
  check_number(from["seconds_to_target"], r.seconds_to_target);
  check_number(from["train_loss"], r.train_loss);
  check_number(from["test_loss"], r.test_loss);
  check_number(from["test_accuracy"], r.test_accuracy);
  check_number(from["wire_bytes_per_step"], r.bytes_per_step);
  check_number(from["down_bytes_per_step"], r.down_bytes_per_step);
  check_number(from["peak_rss_mb"], r.peak_rss_mb);
  check_number(from["device_peak_mb"], r.device_peak_mb);
  check_number(from["wall_s"], r.wall_s);
  check_number(from["cpu_s"], r.cpu_s);
  check_number(from["machine"], r.machine);
  for (const char* name : {"step", "samples", "seconds", "test_loss", "test_accuracy"})
    REQUIRE(from["curve"][name].size() == r.curve.size());
  for (std::size_t e = 0; e < r.curve.size(); ++e) {
    check_number(from["curve"]["step"][e], r.curve[e].step);
    check_number(from["curve"]["samples"][e], r.curve[e].samples);
    check_number(from["curve"]["seconds"][e], r.curve[e].seconds);
    check_number(from["curve"]["test_loss"][e], r.curve[e].test_loss);
    check_number(from["curve"]["test_accuracy"][e], r.curve[e].test_accuracy);
  }
}

void check_setting(const json& setting, const Evidence& evidence, const Setting& s) {
  CHECK(setting["setting"] == name_of(s));
  CHECK(setting["what"] == s.label);
  CHECK(setting["figures"]["ranks"] == s.row.ranks);
  CHECK(setting["all_ranks"] == s.ranks());
  CHECK(setting["runs"] == s.tried());
  CHECK(setting["finished"] == s.finished());
  CHECK(setting["diverged"] == s.diverged);
  CHECK(setting["reached"] == s.reached);
  CHECK(setting["to_target"] == s.to_target());
  check_spread(setting["samples_per_s"], s.row.rate);
  check_spread(setting["final_figure"], s.final_figure);
  check_spread(setting["samples_to_target"], s.samples);
  check_spread(setting["seconds_to_target"], s.seconds);
  check_number(setting["speed_up"], s.row.speed_up);
  check_number(setting["efficiency"], s.row.efficiency);
  check_number(setting["seconds_of_run"], s.run_s);
  check_number(setting["node_hours"], evidence.node_hours(s));
  check_number(setting["price"], evidence.price(s));
  check_number(setting["exchange_exposed_share"], exposed_share(s.row));
  check_number(setting["exchange_hidden_share"], s.row.hidden_share());
  check_number(setting["forward_flops_per_s"], 64e6 / 0.005);  // per rank: its samples and its time are 1/ranks
  check_number(setting["backward_flops_per_s"], 128e6 / 0.015);
  check_number(setting["flops_per_weight_and_step"], 3e6 * 64 / 1000);
  check_number(setting["card_peak_over_mean"], kUnknown);
  CHECK(setting["figures"]["parameters"] == 1000);
  REQUIRE(setting["loss_budget"].size() == kBudgetParts.size());
  double sum = 0;
  for (const BudgetPart& part : kBudgetParts) {
    const json& share = setting["loss_budget"].at(replaced(part.name, "-", "_"));
    check_number(share, s.budget.*part.share);
    sum += share.get<double>();
  }
  CHECK(sum == Approx(1));
  REQUIRE(setting["repetitions"].size() == s.repetitions.size());
  for (std::size_t i = 0; i < s.repetitions.size(); ++i) check_repetition(setting["repetitions"][i], s.repetitions[i]);
}

}  // namespace

TEST_CASE("study.json holds the verdict and every number of the evidence, unknown ones as null", "[report][study]") {
  const Evidence evidence = test::made_study();
  const StudyVerdict verdict = make_verdict(evidence);
  const std::string text = study_json(evidence, verdict, test::made_source());
  INFO(text);
  const json file = json::parse(text);
  CHECK(file["format"] == "echelon-study");
  CHECK(file["version"] == 2);
  CHECK(file["command"] == "echelon scale x.toml");
  CHECK(file["echelon"]["commit"] == "abc");
  CHECK(file["verdict"]["answer"] == answer_name(verdict.answer));
  CHECK(file["verdict"]["headline"] == verdict.headline);
  CHECK(file["verdict"]["caveats"] == json(verdict.caveats));
  CHECK(file["verdict"]["limits"] == json(verdict.limits));
  CHECK(file["verdict"]["met"] == verdict.met());
  CHECK(file["verdict"]["recommended"].is_null());  // one repetition names no winner
  CHECK(file["rules"]["margin"] == evidence.rules.margin);
  CHECK(file["rules"]["least_gain"] == evidence.rules.least_gain);
  REQUIRE(verdict.goals.size() == 2);
  REQUIRE(file["verdict"]["goals"].size() == 2);
  for (std::size_t g = 0; g < 2; ++g) {
    CHECK(file["verdict"]["goals"][g]["met"] == verdict.goals[g].met);
    CHECK(file["verdict"]["goals"][g]["text"] == verdict.goals[g].text);
  }
  CHECK(file["goal"]["metric"] == "test_accuracy");
  CHECK(file["goal"]["target"] == 0.8);
  CHECK(file["goal"]["least_efficiency"] == 0.5);
  CHECK(file["goal"]["deadline_h"].is_null());
  CHECK(file["cost"]["node_hour"] == 3.6);
  CHECK(file["cost"]["currency"] == "EUR");
  CHECK(file["baseline"] == evidence.baseline);
  CHECK(file["figure"] == "test_accuracy");
  REQUIRE(file["settings"].size() == evidence.settings.size());
  for (std::size_t i = 0; i < evidence.settings.size(); ++i)
    check_setting(file["settings"][i], evidence, evidence.settings[i]);
}

TEST_CASE("study.json holds the bytes on the wire of every setting", "[report][study]") {
  Evidence evidence = test::made_study();
  for (Setting& s : evidence.settings) s.wire = {{0, 2e6 * s.ranks()}, {5e5, 0}};
  const json file = json::parse(study_json(evidence, make_verdict(evidence), test::made_source()));
  for (const Setting& s : evidence.settings) {
    const json& wire = file["settings"][static_cast<std::size_t>(&s - evidence.settings.data())]["wire"];
    CHECK(wire["ranks"] == 2);
    CHECK(wire["bytes_per_step"] == json{{0, 1, 2e6 * s.ranks()}, {1, 0, 5e5}});
  }
}

TEST_CASE("verdict and page are made again from study.json alone", "[report][study]") {
  const test::TempFolder folder;
  Evidence evidence = test::made_study();
  for (Setting& s : evidence.settings) {
    s.wire = {{0, 1e6}, {5e5 / 3, 0}};
    for (int round = 2; round <= 6; ++round) {
      Repetition& r = s.repetitions.emplace_back(s.repetitions.front());
      r.repeat = round;
      r.samples_per_s *= 1 + 0.01 * (round % 3);
      r.seconds_to_target *= 1 + 0.01 * (round % 3);
    }
    s.repetitions[1].outcome = s.ranks() == 2 ? Outcome::diverged : Outcome::finished;
  }
  evidence.rules = {.margin = 0.02, .least_gain = 0.05};
  evidence.controls = {{"", 1, 1000}, {"", 2, 900}, {"", 3, 1001}};
  complete(evidence);
  const StudyVerdict verdict = make_verdict(evidence);
  const std::string text = study_json(evidence, verdict, test::made_source());
  write_file_whole(folder / "study.json", text);
  CHECK(is_study(folder / "study.json"));
  const StudyFile read = read_study(folder / "study.json");
  CHECK(read.source.date == test::made_source().date);
  const StudyVerdict again = make_verdict(read.evidence);
  CHECK(study_json(read.evidence, again, read.source) == text);
  CHECK(study_csv(read.evidence, again, read.source) == study_csv(evidence, verdict, test::made_source()));
  CHECK(study_text(read.evidence, again) == study_text(evidence, verdict));
  CHECK(study_markdown(read.evidence, again, read.source) == study_markdown(evidence, verdict, test::made_source()));
}

TEST_CASE("a study.json that is damaged, or of another version, is refused by name", "[report][study]") {
  const test::TempFolder folder;
  const std::string path = folder / "study.json";
  CHECK_FALSE(is_study(path));
  write_file_whole(path, R"({"format":"echelon-study","version":1})");
  CHECK(is_study(path));
  CHECK_THROWS_WITH(read_study(path), Catch::Contains(path) && Catch::Contains("version 2 (it has version 1)"));
  write_file_whole(path, R"({"format":"echelon-study","version":2,"goal":{}})");
  CHECK_THROWS_WITH(read_study(path), Catch::Contains(path) && Catch::Contains("is not a complete study"));
  const Evidence evidence = test::made_study();
  json file = json::parse(study_json(evidence, make_verdict(evidence), test::made_source()));
  file["settings"][0]["wire"] = {{"ranks", 2}, {"bytes_per_step", {{0, 7, 1.0}}}};
  write_file_whole(path, file.dump());
  CHECK_THROWS_WITH(read_study(path), Catch::Contains("names ranks that its wire matrix does not have"));
  file["settings"][0]["wire"] = nullptr;
  file["settings"][0]["repetitions"][0]["outcome"] = "finshed";
  write_file_whole(path, file.dump());
  CHECK_THROWS_WITH(read_study(path), Catch::Contains("finished"));
}

TEST_CASE("study.json and study.csv of a study without goal, price or run", "[report][study]") {
  Evidence evidence = test::made_study();
  evidence.goal = {};
  evidence.cost = {};
  for (Setting& s : evidence.settings) s.budget = {};
  const StudyVerdict verdict = make_verdict(evidence);
  const json file = json::parse(study_json(evidence, verdict, test::made_source()));
  CHECK(file["goal"]["metric"].is_null());
  CHECK(file["goal"]["target"].is_null());
  CHECK(file["cost"]["node_hour"].is_null());
  CHECK(file["settings"][0]["price"].is_null());
  CHECK(file["settings"][0]["loss_budget"].is_null());
  const auto rows = rows_of(study_csv(evidence, verdict, test::made_source()));
  CHECK(rows.at(0).at("price").empty());
  CHECK(rows.at(0).at("loss_budget_achieved").empty());
  const json none = json::parse(study_json({}, make_verdict({}), test::made_source()));
  CHECK(none["settings"].empty());
  CHECK(none["baseline"].is_null());
  CHECK(none["verdict"]["recommended"].is_null());
  CHECK(rows_of(study_csv({}, make_verdict({}), test::made_source())).empty());
}

TEST_CASE("study.csv has a row a setting and a column a figure, with the numbers of the evidence", "[report][study]") {
  const Evidence evidence = test::made_study();
  const StudyVerdict verdict = make_verdict(evidence);
  const std::string text = study_csv(evidence, verdict, test::made_source());
  INFO(text);
  const auto rows = rows_of(text);
  REQUIRE(rows.size() == evidence.settings.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Setting& s = evidence.settings[i];
    const auto& row = rows[i];
    CHECK(row.at("setting") == name_of(s));
    CHECK(row.at("what") == s.label);
    CHECK(row.at("baseline") == (static_cast<int>(i) == evidence.baseline ? "true" : "false"));
    CHECK(row.at("recommended") == (static_cast<int>(i) == verdict.recommended ? "true" : "false"));
    CHECK(row.at("to_target") == (s.to_target() ? "true" : "false"));
    check_number(row.at("ranks"), s.row.ranks);
    check_number(row.at("reached"), s.reached);
    check_number(row.at("samples_per_s"), s.row.rate.median);
    check_number(row.at("samples_per_s_low"), s.row.rate.low);
    check_number(row.at("speed_up"), s.row.speed_up);
    check_number(row.at("efficiency"), s.row.efficiency);
    check_number(row.at("final_figure"), s.final_figure.median);
    check_number(row.at("samples_to_target"), s.samples.median);
    check_number(row.at("seconds_to_target_high"), s.seconds.high);
    check_number(row.at("node_hours"), evidence.node_hours(s));
    check_number(row.at("price"), evidence.price(s));
    check_number(row.at("forward_flops_per_s"), 64e6 / 0.005);
    check_number(row.at("exchange_exposed_share"), exposed_share(s.row));
    for (const BudgetPart& part : kBudgetParts)
      check_number(row.at("loss_budget_" + replaced(part.name, "-", "_")), s.budget.*part.share);
    CHECK(row.at("figure") == "test_accuracy");
    CHECK(row.at("currency") == "EUR");
    CHECK(row.at("report_commit") == "abc");
  }
}

}  // namespace echelon
