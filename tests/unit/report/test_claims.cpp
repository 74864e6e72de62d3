// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <cmath>
#include <random>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "report/claims/claim_record.hpp"
#include "report/claims/formula.hpp"
#include "report/claims/judge.hpp"
#include "report/writers/claims.hpp"
#include "tests/support/process.hpp"

namespace echelon::test {
namespace {

double evaluated(const std::string& text) {
  return evaluate_formula(text, [](const std::string& name) {
    return name == "k" ? 8.0 : name == "a.b_c" ? 3.0 : NAN;
  });
}

ClaimCell cell(std::map<std::string, std::string> keys, std::uint64_t seed, double bytes) {
  return {
      .keys = std::move(keys), .seed = seed, .outcome = "finished", .figures = {{"bytes", bytes}, {"parameters", 10}}};
}

Claim claim_with(const ClaimTest& test, Instrument instrument = Instrument::exact) {
  Claim claim;
  claim.number = 7;
  claim.sentence = "A sentence.";
  claim.instrument = instrument;
  claim.let = {{"G", "4 * parameters"}};
  claim.tests = {test};
  return claim;
}

ClaimWord word_of(const ClaimTest& test, const std::vector<ClaimCell>& cells,
                  Instrument instrument = Instrument::exact) {
  return judge_claim(claim_with(test, instrument), cells).word;
}

// Makes seeds of two settings, the second `factor` times the first, with this relative noise.
std::vector<ClaimCell> noisy(double factor, double noise, std::uint64_t seeds) {
  std::mt19937_64 random(static_cast<std::uint64_t>(1000 * factor) + seeds);
  std::normal_distribution<double> normal(0, noise);
  std::vector<ClaimCell> cells;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    for (const bool first : {true, false})
      cells.push_back(cell({{"variant", first ? "a" : "b"}}, seed, (first ? 1.0 : factor) * std::exp(normal(random))));
  return cells;
}

}  // namespace

TEST_CASE("formulas follow the usual precedence", "[report][claims]") {
  CHECK(evaluated("2 * (k - 1) * 5") == 70);
  CHECK(evaluated("1 - 2 - 3") == -4);
  CHECK(evaluated("-2^2") == -4);
  CHECK(evaluated("2^3^2") == 512);
  CHECK(evaluated("2^-1") == 0.5);
  CHECK(evaluated("k / 2 / 2") == 2);
  CHECK(evaluated("floor(log2(k + 1)) + max(a.b_c, 1) * ceil(0.2)") == 6);
  CHECK(evaluated("1e3 >= k") == 1);
  CHECK(evaluated("k == 7") == 0);
  CHECK(evaluated("(k > 7) * 4") == 4);
  CHECK(std::isnan(evaluated("unknown + 1")));
  CHECK(std::isnan(evaluated("min(unknown, 1)")));
  CHECK(std::isnan(evaluated("unknown < 1")));
  CHECK(names_of_formula("2 * (k - 1) * G + log2(k)") == std::vector<std::string>{"k", "G"});
}

TEST_CASE("mistakes in a formula name their column", "[report][claims]") {
  for (const auto& [text, said] :
       std::vector<std::pair<std::string, std::string>>{{"2 *", "column 4"},
                                                        {"2 * (k", "')' is expected"},
                                                        {"2 k", "an operator is expected"},
                                                        {"logg2(k)", "did you mean 'log2'"},
                                                        {"min(1)", "',' is expected"},
                                                        {"", "a number, a name or '('"},
                                                        {std::string(1000, '('), "a formula with fewer nested parts"}})
    CHECK_THROWS_WITH(check_formula(text), Catch::Contains(said));
}

TEST_CASE("an exact formula is confirmed by equality and refuted by one cell", "[report][claims]") {
  const ClaimTest ring = {.figure = "bytes", .formula = "2 * (ranks - 1) * G", .where = {"algorithm=ring"}};
  std::vector<ClaimCell> cells;
  for (const int k : {2, 3, 4, 8})
    cells.push_back(cell({{"algorithm", "ring"}, {"ranks", std::to_string(k)}}, 1, 2.0 * (k - 1) * 40));
  cells.push_back(cell({{"algorithm", "naive"}, {"ranks", "8"}}, 1, 1));
  CHECK(word_of(ring, cells) == ClaimWord::confirmed);
  const ClaimVerdict verdict = judge_claim(claim_with(ring), cells);
  CHECK(verdict.tests[0].effects.size() == 4);
  cells[2].figures["bytes"] += 1;
  CHECK(word_of(ring, cells) == ClaimWord::refuted);
  CHECK(judge_claim(claim_with(ring), cells).tests[0].decisive().what == "algorithm = ring, ranks = 4");
}

TEST_CASE("a formula whose value is 0 bounds the figure itself", "[report][claims]") {
  const ClaimTest equal = {.figure = "bytes", .formula = "0", .within = 1e-4};
  CHECK(word_of(equal, {cell({{"ranks", "2"}}, 1, 9e-5)}) == ClaimWord::confirmed);
  CHECK(word_of(equal, {cell({{"ranks", "2"}}, 1, 2e-4)}) == ClaimWord::refuted);
}

TEST_CASE("ratios pair settings that agree in all other keys", "[report][claims]") {
  ClaimTest half = {.kind = TestKind::ratio, .figure = "bytes", .of = {"codec=fp16"}, .over = {"codec=none"}};
  half.expect = 0.5;
  std::vector<ClaimCell> cells;
  for (const int k : {2, 4})
    for (const bool coded : {false, true})
      cells.push_back(cell({{"codec", coded ? "fp16" : "none"}, {"ranks", std::to_string(k)}}, 1, coded ? k : 2 * k));
  const ClaimVerdict verdict = judge_claim(claim_with(half), cells);
  CHECK(verdict.word == ClaimWord::confirmed);
  CHECK(verdict.tests[0].effects.size() == 2);
  half.expect = 0.25;
  CHECK(word_of(half, cells) == ClaimWord::refuted);
}

TEST_CASE("what cannot be computed is not decided, with the reason", "[report][claims]") {
  ClaimTest test = {.figure = "bytes", .formula = "G"};
  const auto problem = [&](const std::vector<ClaimCell>& cells) {
    const ClaimVerdict verdict = judge_claim(claim_with(test), cells);
    CHECK(verdict.word == ClaimWord::not_decided);
    return verdict.tests[0].problem;
  };
  CHECK(problem({}) == "no cell of the study matches the test");
  ClaimCell lost = cell({{"ranks", "2"}}, 1, 40);
  lost.outcome = "diverged";
  CHECK(problem({lost}) == "ranks = 2: diverged");
  test.figure = "byte";
  CHECK_THAT(problem({cell({{"ranks", "2"}}, 1, 40)}), Catch::Contains("no figure or numeric key 'byte'"));
}

TEST_CASE("with noise the interval decides", "[report][claims]") {
  ClaimTest faster = {.kind = TestKind::ratio, .figure = "bytes", .of = {"variant=b"}, .over = {"variant=a"}};
  faster.at_least = 1.0;
  CHECK(word_of(faster, noisy(1.2, 0.01, 5), Instrument::real) == ClaimWord::confirmed);
  CHECK(word_of(faster, noisy(0.8, 0.01, 5), Instrument::real) == ClaimWord::refuted);
  CHECK(word_of(faster, noisy(1.2, 0.5, 5), Instrument::real) == ClaimWord::not_decided);
  CHECK(word_of(faster, noisy(1.2, 0.01, 1), Instrument::real) == ClaimWord::not_decided);
  ClaimTest equal = {.kind = TestKind::equivalent, .figure = "bytes", .of = {"variant=b"}, .over = {"variant=a"}};
  equal.within = 0.1;
  CHECK(word_of(equal, noisy(1.0, 0.01, 5), Instrument::real) == ClaimWord::confirmed);
  CHECK(word_of(equal, noisy(1.5, 0.01, 5), Instrument::real) == ClaimWord::refuted);
}

TEST_CASE("a wrong assertion is confirmed in at most 5 of 100 studies", "[report][claims]") {
  // The true ratio is 1: "above 1" and "below 1" are both false or undecided; each may be confirmed in 2.5 % at most.
  ClaimTest above = {.kind = TestKind::ratio, .figure = "bytes", .of = {"variant=b"}, .over = {"variant=a"}};
  above.at_least = 1.0;
  int confirmed = 0;
  constexpr int kStudies = 2000;
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal(0, 0.1);
  for (int i = 0; i < kStudies; ++i) {
    std::vector<ClaimCell> cells;
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
      for (const char* variant : {"a", "b"})
        cells.push_back(cell({{"variant", variant}}, seed, std::exp(normal(random))));
    confirmed += word_of(above, cells, Instrument::real) == ClaimWord::confirmed;
  }
  // 2.5 % of 2,000 is 50, with a standard deviation of 7; six of them are allowed in either direction.
  CHECK(confirmed > 8);
  CHECK(confirmed < 92);
}

TEST_CASE("trends, orders, interactions and shares", "[report][claims]") {
  std::vector<ClaimCell> cells;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (const int k : {1, 2, 4})
      cells.push_back(cell({{"ranks", std::to_string(k)}}, seed, 100.0 - 10 * k + static_cast<double>(seed)));
  ClaimTest trend = {.kind = TestKind::trend, .figure = "bytes", .axis = "ranks", .direction = "falls"};
  CHECK(word_of(trend, cells, Instrument::real) == ClaimWord::confirmed);
  trend.direction = "rises";
  CHECK(word_of(trend, cells, Instrument::real) == ClaimWord::refuted);
  trend.direction = "flat", trend.within = 0.01;
  CHECK(word_of(trend, cells, Instrument::real) == ClaimWord::refuted);

  ClaimTest order = {.kind = TestKind::order, .figure = "bytes"};
  order.order = {{"ranks=1"}, {"ranks=2"}, {"ranks=4"}};
  CHECK(word_of(order, cells, Instrument::real) == ClaimWord::confirmed);
  order.order = {{"ranks=1"}, {"ranks=4"}, {"ranks=2"}};
  CHECK(word_of(order, cells, Instrument::real) == ClaimWord::refuted);

  ClaimTest both = {.kind = TestKind::interaction, .figure = "bytes", .of = {"ranks=1"}};
  both.order = {{"ranks=2"}, {"ranks=4"}};
  CHECK(word_of(both, cells, Instrument::real) == ClaimWord::confirmed);
  both.better = "lower";
  CHECK(word_of(both, cells, Instrument::real) == ClaimWord::refuted);

  ClaimTest share = {.kind = TestKind::share, .figure = "bytes", .formula = "figure >= 0.85 * best"};
  share.expect = 2.0 / 3, share.within = 0.01;
  CHECK(word_of(share, cells, Instrument::real) == ClaimWord::confirmed);
}

TEST_CASE("several assertions are confirmed, refuted or in part", "[report][claims]") {
  const std::vector<ClaimCell> cells = {cell({{"ranks", "2"}}, 1, 40)};
  const ClaimTest right = {.figure = "bytes", .formula = "G"}, wrong = {.figure = "bytes", .formula = "2 * G"},
                  open = {.figure = "missing", .formula = "G"};
  const auto word = [&](std::vector<ClaimTest> tests) {
    Claim claim = claim_with(right);
    claim.tests = std::move(tests);
    return judge_claim(claim, cells).word;
  };
  CHECK(word({right, right}) == ClaimWord::confirmed);
  CHECK(word({wrong, wrong}) == ClaimWord::refuted);
  CHECK(word({right, wrong}) == ClaimWord::in_part);
  CHECK(word({right, open}) == ClaimWord::not_decided);
}

TEST_CASE("adjusted p by Benjamini and Hochberg", "[report][claims]") {
  // The example is from table 1 of their paper: the first four of fifteen are found at 5 %.
  const std::vector<double> p = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                                 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const std::vector<double> after = adjusted_p(p);
  CHECK(std::count_if(after.begin(), after.end(), [](double q) { return q <= 0.05; }) == 4);
  CHECK(after[0] == Approx(0.0015));
  CHECK(after[14] == 1.0);
}

TEST_CASE("records are read back as they were written, by number", "[report][claims]") {
  ClaimTest test = {.says = "says", .kind = TestKind::ratio, .figure = "bytes", .of = {"a=1"}, .over = {"a=2"}};
  test.at_least = 2;
  ClaimRecord record{.claim = claim_with(test), .study = "s", .commit = "c", .date = "d", .devices = "cpu"};
  record.claim.hash = record.registered_hash = "h";
  record.cells = {cell({{"ranks", "2"}}, 3, 0.1)};
  const TempFolder folder;
  write_file_whole(folder.path() + "/07.json", claim_json(record));
  record.claim.number = 2;
  write_file_whole(folder.path() + "/x.json", claim_json(record));
  const std::vector<ClaimRecord> read = read_claim_records(folder.path());
  REQUIRE(read.size() == 2);
  CHECK(read[0].claim.number == 2);
  CHECK(claim_json(read[0]) == claim_json(record));
  CHECK(rule_text(read[0].claim) == rule_text(record.claim));
  CHECK(read[0].cells[0].figures.at("bytes") == 0.1);

  write_file_whole(folder.path() + "/y.json", claim_json(record));
  CHECK_THROWS_WITH(read_claim_records(folder.path()), Catch::Contains("two records belong to claim 2"));
  write_file_whole(folder.path() + "/y.json", "{}");
  CHECK_THROWS_WITH(read_claim_records(folder.path()), Catch::Contains("is not a record of a claim"));
  CHECK_THROWS_WITH(read_claim_records(folder.path() + "/none"), Catch::Contains("No such file"));
}

TEST_CASE("figures of a run are flat numbers, and a record keeps those that the claim names", "[report][claims]") {
  RunFigures run;
  run.card_peak = {1, 5, 2};
  run.parameters = 12;
  const auto all = flat_figures(run);
  CHECK(all.at("card_peak.largest") == 5);
  CHECK(all.at("card_peak.sum") == 8);
  const ClaimTest test = {.figure = "card_peak.largest / G", .formula = "k"};
  const auto kept = claimed_figures(claim_with(test), all);
  CHECK(kept == std::map<std::string, double>{{"card_peak.largest", 5}, {"parameters", 12}});
}

TEST_CASE("the page names every claim, its verdict and a rule that was changed", "[report][claims]") {
  const ClaimTest test = {.says = "Bytes are those of the formula.", .figure = "bytes", .formula = "G"};
  ClaimRecord record{.claim = claim_with(test), .study = "s", .commit = "c", .date = "d", .devices = "cpu"};
  record.claim.sentence = "a < b | \"c\"";
  record.claim.hash = record.registered_hash = "h";
  record.cells = {cell({{"ranks", "2"}}, 1, 40)};
  const std::string page = claims_markdown(judge_claims({record}), "claims.svg");
  CHECK_THAT(page, Catch::Contains("1 claim: 1 confirmed"));
  CHECK_THAT(page, !Catch::Contains("rule was changed"));
  record.registered_hash = "other";
  CHECK_THAT(claims_markdown(judge_claims({record}), "claims.svg"), Catch::Contains("rule was changed"));
  CHECK_THAT(forest_svg(judge_claims({record})), Catch::Contains("a &lt; b"));

  const TempFolder folder;  // the folder of the page is made where it is missing
  for (const std::string& path : write_claims(judge_claims({record}), folder / "new/pages", "claims"))
    CHECK(!read_file_whole(path).empty());
}

}  // namespace echelon::test
