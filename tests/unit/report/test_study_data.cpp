// study.json and study.csv, parsed back: their numbers are those of the evidence.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "report/verdict.hpp"
#include "report/writers/study.hpp"
#include "report/writers/study_data.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/report/made_study.hpp"

namespace echelon {
namespace {

using nlohmann::json;

// A number of the file beside that of the evidence: null, or an empty cell, where it is unknown.
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

// The cells of a line as RFC 4180 reads them.
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

void check_setting(const json& setting, const Evidence& evidence, const Setting& s) {
  CHECK(setting["setting"] == name_of(s));
  CHECK(setting["what"] == s.label);
  CHECK(setting["ranks"] == s.row.ranks);
  CHECK(setting["all_ranks"] == s.ranks());
  CHECK(setting["runs"] == s.row.attempts);
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
  check_number(setting["forward_flops_per_s"], 64e6 / 0.005);  // of a rank: its samples and its time are 1/ranks
  check_number(setting["backward_flops_per_s"], 128e6 / 0.015);
  check_number(setting["flops_per_weight_and_step"], 3e6 * 64 / 1000);
  check_number(setting["card_peak_over_mean"], kUnknown);
  CHECK(setting["parameters"] == 1000);
  REQUIRE(setting["loss_budget"].size() == kBudgetParts.size());
  double sum = 0;
  for (const BudgetPart& part : kBudgetParts) {
    const json& share = setting["loss_budget"].at(replaced(part.name, "-", "_"));
    check_number(share, s.budget.*part.share);
    sum += share.get<double>();
  }
  CHECK(sum == Approx(1));
  REQUIRE(setting["curve"].size() == s.curve.size());
  for (std::size_t e = 0; e < s.curve.size(); ++e) {
    const json& point = setting["curve"][e];
    check_number(point["step"], s.curve[e].step);
    check_number(point["samples"], s.curve[e].samples);
    check_number(point["seconds"], s.curve[e].seconds);
    check_number(point["test_loss"], s.curve[e].test_loss);
    check_number(point["test_accuracy"], s.curve[e].test_accuracy);
  }
}

}  // namespace

TEST_CASE("study.json holds the verdict and every number of the evidence, unknown ones as null", "[report][study]") {
  const Evidence evidence = test::made_study();
  const StudyVerdict verdict = make_verdict(evidence);
  const std::string text = study_json(evidence, verdict, test::made_source());
  INFO(text);
  const json file = json::parse(text);
  CHECK(file["format"] == "echelon-study");
  CHECK(file["version"] == 1);
  CHECK(file["command"] == "echelon scale x.toml");
  CHECK(file["echelon"]["commit"] == "abc");
  CHECK(file["verdict"]["lines"] == json(verdict.lines));
  CHECK(file["verdict"]["met"] == verdict.met());
  CHECK(file["verdict"]["recommended"] == verdict.recommended);
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
  CHECK(file["wire"].is_null());
  REQUIRE(file["settings"].size() == evidence.settings.size());
  for (std::size_t i = 0; i < evidence.settings.size(); ++i)
    check_setting(file["settings"][i], evidence, evidence.settings[i]);
}

TEST_CASE("study.json holds the bytes on the wire of the setting that the page shows", "[report][study]") {
  const test::TempFolder folder;
  write_file_whole(folder / "wire.json",
                   R"({"format":"echelon-wire","version":1,"steps":2,"bytes":[[0,4e6],[1e6,0]]})");
  Evidence evidence = test::made_study();
  const StudyVerdict verdict = make_verdict(evidence);
  for (Setting& s : evidence.settings) s.attempt = folder.path();
  const json file = json::parse(study_json(evidence, verdict, test::made_source()));
  CHECK(file["wire"]["setting"] == &shown_setting(evidence, verdict) - evidence.settings.data());
  CHECK(file["wire"]["bytes_per_step"] == json{{0.0, 2e6}, {5e5, 0.0}});
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
