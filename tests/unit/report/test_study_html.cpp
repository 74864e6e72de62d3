// The page of a study: one file that needs no other, the verdict first, text escaped.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "report/verdict.hpp"
#include "report/writers/html.hpp"
#include "report/writers/markup.hpp"
#include "report/writers/plot.hpp"
#include "report/writers/study.hpp"
#include "report/writers/study_plots.hpp"
#include "tests/support/process.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/report/made_study.hpp"

namespace echelon {
namespace {

using Catch::Contains;

const std::vector<std::string> kOrigin = {"report: 2026 <by> echelon", "hosts: n1; n2", "runs: /a/01 of 2026; /b&c/01"};

std::string page_of(const Evidence& evidence) {
  return study_html(evidence, make_verdict(evidence), test::made_source(), kOrigin);
}

// While it lives programs are looked for in an empty folder alone: there is no gnuplot.
class NoPrograms {
 public:
  NoPrograms() : path_(::getenv("PATH")) { ::setenv("PATH", folder_.path().c_str(), 1); }
  ~NoPrograms() { ::setenv("PATH", path_.c_str(), 1); }
  NoPrograms(const NoPrograms&) = delete;
  NoPrograms& operator=(const NoPrograms&) = delete;

 private:
  const test::TempFolder folder_;
  const std::string path_;
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The values of the attribute, in quotes of either kind.
std::vector<std::string> values_of(const std::string& page, const std::string& attribute) {
  std::vector<std::string> values;
  for (std::size_t at = page.find(attribute + "="); at != std::string::npos; at = page.find(attribute + "=", at + 1)) {
    const std::size_t start = at + attribute.size() + 1;
    values.push_back(page.substr(start + 1, page.find(page[start], start + 1) - start - 1));
  }
  return values;
}

// The SVG text of every figure is left out: gnuplot escapes it.
std::string without_figures(std::string page) {
  for (std::size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg"))
    page.erase(at, page.find("</svg>", at) + 6 - at);
  return page;
}

}  // namespace

TEST_CASE("the page of a study begins with its verdict", "[report][study]") {
  const Evidence evidence = test::made_study();
  const StudyVerdict verdict = make_verdict(evidence);
  const std::string page = page_of(evidence);
  const std::size_t start = page.find("<div class=\"verdict\">"), end = page.find("</div>", start);
  REQUIRE(end != std::string::npos);
  CHECK(start <
        std::min({page.find("<h2"), page.find("<table"), page.find("<figure"), page.find("<p class=\"note\"")}));
  std::size_t at = start;
  for (const std::string& line : sentences_of(verdict)) {
    INFO(line);
    at = page.find("<p>" + escaped(line) + "</p>", at);
    CHECK(at < end);
  }
  REQUIRE_FALSE(verdict.goals.empty());
  for (const GoalLine& goal : verdict.goals) {
    const char* word = goal.met ? "met" : "missed";
    CHECK(page.find(fmt::format("<p class=\"{0}\">goal {0}: {1}</p>", word, escaped(goal.text)), start) < end);
  }
}

TEST_CASE("the page of a study needs no other file: no link, script, style sheet or picture outside of it",
          "[report][study]") {
  const std::string page = page_of(test::made_study());
  CHECK_THAT(page, Catch::StartsWith("<!doctype html>") && Catch::EndsWith("</body></html>\n"));
  for (const char* tag :
       {"<script", "<link", "<img", "<iframe", "<object", "<embed", "<base", "@import", "javascript:"})
    CHECK_THAT(page, !Contains(tag));
  for (const char* attribute : {"href", "src", "srcset", "action"})
    for (const std::string& value : values_of(page, attribute)) {
      INFO(attribute << " " << value);
      CHECK_THAT(value, Catch::StartsWith("#"));  // inside the page
    }
  for (std::size_t at = page.find("url("); at != std::string::npos; at = page.find("url(", at + 1))
    CHECK_THAT(page.substr(at, 12), Contains("#"));
}

TEST_CASE("the page of a study has all its sections", "[report][study]") {
  const test::TempFolder folder;
  write_file_whole(folder / "wire.json",
                   R"({"format":"echelon-wire","version":1,"steps":2,"bytes":[[0,4e6],[1e6,0]]})");
  Evidence evidence = test::made_study();
  for (Setting& s : evidence.settings) s.wire = read_wire(folder.path());
  const std::string page = page_of(evidence);
  std::size_t at = 0;
  for (const char* heading :
       {"<h1>study", "<summary>Numbers of the curves", "<h2>What was run", "<h2>Loss budget",
        "<h2>Compute and memory of a rank", "<h2>Bytes on the wire, MB a step: ", "<h2>Where it comes from"}) {
    INFO(heading);
    at = page.find(heading, at);
    REQUIRE(at != std::string::npos);
  }
  CHECK(count_of(page, "<table>") == 5);
  CHECK(count_of(page, "<table>") == count_of(page, "</table>"));
  CHECK_THAT(page, Contains("<li>hosts: n1; n2</li>"));
  const std::string none = page_of({});  // no run finished
  CHECK_THAT(none, Contains("no run of the study finished") && Contains("Where it comes from") && !Contains("<table"));
}

TEST_CASE("text on the page of a study is escaped", "[report][study]") {
  const std::string page = without_figures(page_of(test::made_study()));
  CHECK_THAT(page, Contains("<title>study &lt;of&gt; digits</title>") && Contains("<h1>study &lt;of&gt; digits</h1>"));
  CHECK_THAT(page, Contains("<td>ring &lt;a, b&gt; &amp; &quot;c&quot;</td>"));               // a table
  CHECK_THAT(page, Contains("ring &lt;a, b&gt; &amp; &quot;c&quot; on 1 rank"));              // the verdict
  CHECK_THAT(page, Contains("2026 &lt;by&gt; echelon") && Contains("<li>/b&amp;c/01</li>"));  // the origin
  for (const char* raw : {"<a, b>", "\"c\"", "<of>", "<by>", "b&c"}) CHECK_THAT(page, !Contains(raw));
}

TEST_CASE("the page of a study is readable in light, dark and print", "[report][study]") {
  const std::string page = page_of(test::made_study());
  const std::string style = page.substr(page.find("<style>"), page.find("</style>") - page.find("<style>"));
  CHECK_THAT(style, Contains("color-scheme: light dark"));
  const std::size_t dark = style.find("@media (prefers-color-scheme: dark) {"), print = style.find("@media print {");
  REQUIRE(dark != std::string::npos);
  REQUIRE(print != std::string::npos);
  const std::string light_rules = style.substr(0, dark), dark_rules = style.substr(dark, style.find("body {") - dark);
  const std::string print_rules = style.substr(print);
  for (const char* colour : {"--fg:", "--bg:", "--soft:", "--rule:", "--good:", "--bad:"}) {
    INFO(colour);
    CHECK_THAT(light_rules, Contains(colour));
    CHECK_THAT(dark_rules, Contains(colour));
  }
  CHECK_THAT(print_rules, Contains("--fg: #000") && Contains("--bg: #fff") && Contains("break-inside: avoid"));
  CHECK_THAT(print_rules, Contains("details { display: none; }"));
  CHECK_THAT(print_rules,
             Contains("orphans: 1; widows: 1;"));  // one row of figures may stay on the page of the verdict
  CHECK_THAT(style, Contains("@page"));
}

TEST_CASE("without gnuplot the page of a study says what to install, and has its tables", "[report][study]") {
  const Evidence evidence = test::made_study();
  std::string page;
  {
    const NoPrograms nothing;
    REQUIRE_FALSE(can_draw());
    page = page_of(evidence);
  }
  CHECK_THAT(page, Contains(std::string("<p class=\"note\">") + kInstallGnuplot + "</p>") && !Contains("<svg"));
  CHECK_THAT(page, Contains("apt install gnuplot-nox") && Contains("<h2>What was run") && Contains("<details>"));
  if (test::skip_without(can_draw(), "needs gnuplot")) return;
  page = page_of(evidence);
  CHECK_THAT(page, !Contains(kInstallGnuplot));
  CHECK(count_of(page, "<figure><svg") == 4);
}

TEST_CASE("the folders of the runs are on the page of a study in a closed list", "[report][study]") {
  const std::string page = page_of(test::made_study());
  const std::size_t start = page.find("<details><summary>Folders of the runs</summary>");
  REQUIRE(start != std::string::npos);
  const std::string list = page.substr(start, page.find("</details>", start) - start);
  CHECK_THAT(list, Contains("<li>/a/01 of 2026</li>") && Contains("<li>/b&amp;c/01</li>"));
  CHECK(count_of(page, "/a/01") == 1);
  CHECK_THAT(page, !Contains("<details open"));
}

TEST_CASE("the curves of a study have their numbers beside them, as a table", "[report][study]") {
  Evidence evidence = test::made_study();
  const std::string text = evaluations_table(evidence).markdown();
  INFO(text);
  // The best single worker, and both variants on 2 ranks.
  CHECK(count_of(text, "\n") == 2 + 3 * 2);
  CHECK_THAT(text, Contains("| setting ") && Contains("| samples | seconds | test accuracy |"));
  CHECK_THAT(text, Contains("| plain on 2 ranks ") && Contains("|     640 |   50.00 |        0.7500 |"));
  CHECK_THAT(text, Contains("|   1,280 |  100.00 |        0.9000 |") && !Contains("plain on 1 rank "));
  const std::string markdown = study_markdown(evidence, make_verdict(evidence), test::made_source());
  CHECK_THAT(markdown, Contains("\n## Evaluations\n") && Contains(text));
  CHECK_THAT(page_of(evidence), Contains("<td class=\"r\">50.00</td><td class=\"r\">0.7500</td>"));
  // Of many evaluations every n-th, the last one among them.
  evidence.settings.resize(1);
  std::vector<Evaluation>& curve = evidence.settings[0].repetitions[0].curve;
  curve.clear();
  complete(evidence);
  for (int e = 1; e <= 120; ++e)
    curve.push_back({.step = 1.0 * e, .samples = 64.0 * e, .seconds = 1.0 * e, .test_loss = 1, .test_accuracy = 0.5});
  const std::string thinned = evaluations_table(evidence).text();
  CHECK(count_of(thinned, "\n") == 2 + 40);
  CHECK_THAT(thinned, Contains(" 120.00 ") && Contains(" 3.00 ") && !Contains(" 119.00 "));
  curve.clear();
  CHECK(evaluations_table(evidence).empty());
  CHECK_THAT(page_of(evidence), !Contains("Numbers of the curves"));
}

TEST_CASE("a variant has one colour in all figures of a study", "[report][study]") {
  const Evidence evidence = test::made_study();
  const LinePlot speed = speed_plot(evidence);
  REQUIRE(speed.lines.size() == 2);
  CHECK(speed.lines[0].colour != speed.lines[1].colour);
  for (const bool over_time : {false, true}) {
    const LinePlot curves = curve_plot(evidence, over_time);
    REQUIRE(curves.lines.size() == 3);
    for (const PlotLine& line : curves.lines) {
      const PlotLine& same = line.name.starts_with("plain") ? speed.lines[0] : speed.lines[1];
      INFO(line.name);
      CHECK_THAT(line.name, Catch::StartsWith(same.name));
      CHECK(line.colour == same.colour);
      CHECK(line.dashed == (line.name != same.name));  // the best single worker: "ring .. on 1"
    }
  }
}

TEST_CASE("the oscillation of the loss stands beside the staleness, where any setting has that", "[report][study]") {
  Evidence evidence = test::made_study();
  for (Setting& s : evidence.settings) s.row.loss_oscillation = 0.0625;
  CHECK_THAT(settings_table(evidence).text(), !Contains("oscillation") && !Contains("staleness"));
  evidence.settings[1].row.staleness_mean = 6.75, evidence.settings[1].row.staleness_largest = 14;
  const std::string text = settings_table(evidence).text();
  INFO(text);
  CHECK_THAT(text, Contains("oscillation") && Contains("0.062") && Contains("6.75, at most 14"));
}

TEST_CASE("an exchange is named with its algorithm where it has one", "[report]") {
  RunFigures run;
  run.strategy = "synchronous", run.algorithm = "ring";
  CHECK(exchange_name(run) == "synchronous, ring");
  run.strategy = "asynchronous";
  CHECK(exchange_name(run) == "asynchronous");
}

TEST_CASE("updates, gradients and samples that were dropped are a column where a setting has them", "[report][study]") {
  Evidence evidence = test::made_study();
  CHECK_THAT(settings_table(evidence).text(), !Contains("dropped"));
  for (Setting& s : evidence.settings) s.row.updates_applied = 197, s.row.updates_dropped = 0;
  CHECK_THAT(settings_table(evidence).text(), !Contains("dropped"));
  evidence.settings[1].row.updates_dropped = 3;
  CHECK_THAT(settings_table(evidence).text(), Contains("dropped"));
  evidence.settings[2].row.updates_applied = evidence.settings[2].row.updates_dropped = kUnknown;
  evidence.settings[2].row.gradients_dropped = {0, 5};
  evidence.settings[2].row.samples_dropped = {0, 1320};
  const std::string text = settings_table(evidence).text();
  INFO(text);
  CHECK_THAT(text, Contains("dropped") && Contains("0 of 197 updates") && Contains("3 of 200 updates"));
  CHECK_THAT(text, Contains("5 gradients of a rank, 1,320 samples"));
  CHECK_THAT(page_of(evidence), Contains(">3 of 200 updates</td>"));
  RunFigures none;
  CHECK(dropped_text(none) == "-");
  none.gradients_dropped = {0, 0};
  CHECK(dropped_text(none) == "0");
  // In the tables of `echelon report` too; of repetitions the largest.
  RunFigures once, twice;
  once.gradients_dropped = {1, 2}, once.samples_dropped = {64, 128};
  twice.gradients_dropped = {0, 4}, twice.samples_dropped = {0, 256};
  CHECK(dropped_text(combine_runs({&once, &twice})) == "4 gradients of a rank, 256 samples");
  Study study;
  study.rows.resize(1);
  CHECK_THAT(rate_table(study).text(), !Contains("dropped"));
  static_cast<RunFigures&>(study.rows[0]) = twice;
  CHECK_THAT(rate_table(study).text(), Contains("dropped") && Contains("4 gradients of a rank, 256 samples"));
}

}  // namespace echelon
