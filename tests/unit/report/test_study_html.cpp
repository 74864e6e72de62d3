// SPDX-License-Identifier: Apache-2.0
// The page of a study: one file that needs no other, with the answer first and text escaped.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/escape.hpp"
#include "report/verdict.hpp"
#include "report/writers/html.hpp"
#include "report/writers/study.hpp"
#include "report/writers/study_plots.hpp"
#include "tests/unit/report/made_record.hpp"
#include "tests/unit/report/made_study.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Made;

const std::vector<std::string> kOrigin = {"report: 2026 <by> echelon", "hosts: n1; n2", "runs: /a/01 of 2026; /b&c/01"};

std::string page_of(const Evidence& evidence) {
  return study_html(evidence, make_verdict(evidence), test::made_source(), kOrigin);
}

// Makes five repetitions in which 4 ranks of "ring" win, "rough" is faster and worse, and "wild" diverges three times.
Evidence decided_study() {
  return test::made_record(
      5, {Made(1, "ring").rate(1000).accuracy(0.9), Made(4, "ring").rate(3800).accuracy(0.9),
          Made(4, "rough").rate(5000).accuracy(0.6), Made(4, "wild").rate(4000).accuracy(0.9).diverged(3)});
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Returns the values of the attribute, which are in double quotes.
std::vector<std::string> values_of(const std::string& page, const std::string& attribute) {
  std::vector<std::string> values;
  for (std::size_t at = page.find(attribute + "=\""); at != std::string::npos;
       at = page.find(attribute + "=\"", at + 1)) {
    const std::size_t start = at + attribute.size() + 2;
    values.push_back(page.substr(start, page.find('"', start) - start));
  }
  return values;
}

// Returns the page from <body> on, without the script.
std::string body_of(const std::string& page) {
  const std::size_t start = page.find("</head>");
  return page.substr(start, page.find("<script>") - start);
}

}  // namespace

TEST_CASE("the page of a study begins with the answer in large type, then what to do, then why", "[report][study]") {
  const Evidence evidence = decided_study();
  const StudyVerdict verdict = make_verdict(evidence);
  REQUIRE(verdict.answer == Answer::yes);
  const std::string page = study_html(evidence, verdict, test::made_source(), kOrigin);
  const HeadlineParts headline = headline_parts(verdict.headline);
  CHECK_THAT(page, Contains("<section class=\"answer yes\">\n<h1><b>Yes</b>: 4 ranks, ring.</h1>\n<p>"));
  CHECK(headline.head == "Yes: 4 ranks, ring.");
  CHECK_THAT(headline.rest, Catch::StartsWith("3.8x"));
  std::size_t at = 0;
  for (const std::string& part :
       {std::string("<h1>"), escaped_for_markup(headline.rest), std::string("<table class=\"wants\">"),
        std::string("<h3>Faster, at the price of quality"), std::string("<h3>What limits it"),
        std::string("<h3>Caveats"), std::string("<h2>Figures"), std::string("<h2>What was run"),
        std::string("<h2>Where it comes from")}) {
    INFO(part);
    REQUIRE(page.find(part, at) != std::string::npos);
    at = page.find(part, at);
  }
  CHECK(count_of(page, "<h1") == 1);
  // The page has every sentence of the verdict, except that of the rows it has the cells.
  for (const std::vector<std::string>* lines : {&verdict.limits, &verdict.caveats})
    for (const std::string& line : *lines) CHECK_THAT(page, Contains("<li>" + escaped_for_markup(line) + "</li>"));
  CHECK_THAT(page, Contains("<tr class=\"chosen\"><th scope=\"row\">ring</th>"));  // the recommended setting
  CHECK_THAT(page, Contains(">2 of 5, 3 diverged</td>"));
}

TEST_CASE("what to do if one wants something: setting, value, gain with its interval, ties", "[report][study]") {
  const Evidence evidence = decided_study();
  const StudyVerdict verdict = make_verdict(evidence);
  const Table table = wants_table(evidence, verdict);
  REQUIRE(table.rows().size() == verdict.rows.size());
  REQUIRE_FALSE(table.empty());
  const auto& first = table.rows().front();
  CHECK_THAT(first[0], Contains("samples/s"));
  CHECK(first[1] == "4 ranks, ring");
  CHECK_THAT(first[3], Catch::Matches(R"(3\.8x \(3\.[78] to 3\.[89]\))"));
  CHECK(gain_cell({.value = 1.034, .low = 1.001, .high = 1.06, .pairs = 5}) == "1.03x (1.00 to 1.06)");
  CHECK(gain_cell({.value = -0.02, .low = -0.031, .high = -0.01, .ratio = false, .pairs = 5}) ==
        "-0.02 (-0.031 to -0.01)");
  CHECK(gain_cell({.value = 3.9, .pairs = 1}) == "3.9x");
  CHECK(gain_cell({}) == "-");
  const auto tied_with = [&](std::size_t ties) {
    StudyVerdict tied = verdict;
    tied.rows.front().ties.assign(ties, 0);
    return wants_table(evidence, tied).rows().front()[4];
  };
  CHECK(tied_with(4) == "1 rank, ring; 1 rank, ring; 1 rank, ring and 1 rank, ring");
  CHECK(tied_with(24) == "1 rank, ring; 1 rank, ring; 1 rank, ring and 21 other settings");
  // With too few repetitions, the reason stands in place of the setting.
  const Evidence few = test::made_record(1, {Made(1).rate(1000).accuracy(0.9), Made(2).rate(1900).accuracy(0.9)});
  const StudyVerdict open = make_verdict(few);
  REQUIRE_FALSE(open.rows.empty());
  const std::string page = study_html(few, open, test::made_source(), kOrigin);
  CHECK_THAT(page, Contains("<section class=\"answer undecided\">\n<h1><b>Not decided</b>"));
  CHECK_THAT(page, Contains("<td class=\"open\" colspan=\"4\">not decided; "));
}

TEST_CASE("several environments have an answer each on the page", "[report][study]") {
  const Evidence evidence = test::made_record(
      5, {Made(1, "ring").rate(1000).environment("fast <net>"), Made(2, "ring").rate(1900).environment("fast <net>"),
          Made(1, "ring").rate(1000).environment("slow net"), Made(2, "ring").rate(500).environment("slow net")});
  const StudyVerdict verdict = make_verdict(evidence);
  const std::string page = study_html(evidence, verdict, test::made_source(), kOrigin);
  CHECK_THAT(page, Contains("<p><b>fast &lt;net&gt;</b>: Yes: ") && Contains("<p><b>slow net</b>: No: "));
  CHECK_THAT(page, Contains("<th scope=\"col\">environment</th>") && !Contains("<net>"));
  CHECK_THAT(headline_text(verdict), Contains("\n  fast <net>: Yes: ") && Contains("\n  slow net: No: "));
  CHECK(speed_plot(evidence).lines.size() == 2);
}

TEST_CASE("the page of a study needs no other file and no network", "[report][study]") {
  const std::string page = page_of(decided_study());
  CHECK_THAT(page, Catch::StartsWith("<!doctype html>") && Catch::EndsWith("</body></html>\n"));
  for (const char* tag : {"<script ", "<link", "<img", "<iframe", "<object", "<embed", "<base", "@import",
                          "javascript:", "fetch(", "XMLHttpRequest", "import("})
    CHECK_THAT(page, !Contains(tag));
  for (const char* attribute : {"href", "src", "srcset", "action"}) CHECK(values_of(page, attribute).empty());
  CHECK(count_of(page, "url(") == 0);
  CHECK(count_of(page, "://") == count_of(page, "xmlns=\"http://www.w3.org/2000/svg\""));  // a name, not an address
  CHECK(count_of(page, "{{") == 0);
}

TEST_CASE("the page of a study has all its sections", "[report][study]") {
  Evidence evidence = test::made_study();
  for (Setting& s : evidence.settings) s.wire = {{0, 2e6}, {5e5, 0}};
  const std::string page = page_of(evidence);
  std::size_t at = 0;
  for (const char* heading : {"<b>study", "<h3>Goals", "<h2>Figures", "<h2>What was run", "<h2>Loss budget",
                              "<h2>Compute and memory of a rank", "<h2>Bytes on the wire, MB a step: ",
                              "<summary>Numbers of the curves", "<h2>Where it comes from"}) {
    INFO(heading);
    at = page.find(heading, at);
    REQUIRE(at != std::string::npos);
  }
  CHECK(count_of(page, "<table") == count_of(page, "<div class=\"wide\"><table"));  // it scrolls in its own box
  CHECK(count_of(page, "<table") == count_of(page, "</table>"));
  CHECK(count_of(page, "<svg") == 3);
  CHECK_THAT(page, Contains("<li>hosts: n1; n2</li>"));
  const std::string none = page_of({});  // no run has finished
  CHECK_THAT(none, Contains("no run of the study finished") && Contains("Where it comes from") && !Contains("<table "));
}

TEST_CASE("text on the page of a study is escaped, in Markdown by its own rules", "[report][study]") {
  const std::string bad = "<script>alert(1)</script>";
  Evidence evidence = test::made_study();
  evidence.settings[2].label = bad + " | *x*\x1b[31m";
  const StudyVerdict verdict = make_verdict(evidence);
  ReportSource source = test::made_source();
  source.name = bad;
  const std::string page = study_html(evidence, verdict, source, {bad, "runs: " + bad});
  CHECK(count_of(page, "<script>") == 1);  // only the page's own
  CHECK_THAT(page, Contains("<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>"));
  CHECK_THAT(page, Contains("<th scope=\"row\">ring &lt;a, b&gt; &amp; &quot;c&quot;</th>"));
  for (const char* raw : {"<a, b>", "\"c\"", "\x1b"}) CHECK_THAT(body_of(page), !Contains(raw));
  const std::string markdown = study_markdown(evidence, verdict, source);
  CHECK_THAT(markdown, Catch::StartsWith("# &lt;script>alert(1)&lt;/script>\n"));
  CHECK_THAT(markdown, !Contains("<script>") && !Contains("<a, b>") && !Contains("\x1b"));
  CHECK_THAT(markdown, Contains("&lt;script>alert(1)&lt;/script> \\| \\*x\\*?\\[31m "));
  CHECK_THAT(study_text(evidence, verdict), Contains(bad) && !Contains("\x1b"));
}

TEST_CASE("the page of a study is readable in light, dark, on a phone and in print", "[report][study]") {
  const std::string page = page_of(test::made_study());
  const std::string style = page.substr(page.find("<style>"), page.find("</style>") - page.find("<style>"));
  CHECK_THAT(style, Contains("color-scheme: light dark") && Contains("@media (max-width: 640px)") && Contains("@page"));
  const std::size_t dark = style.find("@media (prefers-color-scheme: dark) {"), print = style.find("@media print {");
  REQUIRE(dark != std::string::npos);
  REQUIRE(print != std::string::npos);
  const std::string light_rules = style.substr(0, dark), dark_rules = style.substr(dark, style.find("body {") - dark);
  for (const char* colour : {"--fg:", "--quiet:", "--bg:", "--soft:", "--rule:", "--yes:", "--no:", "--open:"}) {
    INFO(colour);
    CHECK_THAT(light_rules, Contains(colour));
    CHECK_THAT(dark_rules, Contains(colour));
  }
  CHECK_THAT(style.substr(print),
             Contains("--fg: #000") && Contains("--bg: #fff") && Contains("details { display: none"));
}

TEST_CASE("curves of a study are those of all repetitions, with a band", "[report][study]") {
  const Evidence evidence =
      test::made_record(3, {Made(1, "ring").rate(1000).accuracy(0.9), Made(2, "ring").rate(1900).accuracy(0.9)});
  Evidence apart = evidence;
  for (Setting& s : apart.settings)
    for (std::size_t r = 0; r < s.repetitions.size(); ++r) {
      const double shift = 0.1 * static_cast<double>(r);
      s.repetitions[r].curve = {
          {.step = 1, .samples = 1000, .seconds = 1, .test_loss = 1, .test_accuracy = 0.4 + shift},
          {.step = 2, .samples = 2000, .seconds = 2, .test_loss = 1, .test_accuracy = 0.6 + shift}};
    }
  complete(apart);
  for (const bool over_time : {false, true}) {
    const LinePlot plot = curve_plot(apart, over_time);
    REQUIRE(plot.lines.size() == 2);  // the largest size, and the single worker
    const PlotPoint& last = plot.lines[1].points.back();
    CHECK(last.x == Approx(2));
    CHECK(last.y == Approx(0.7));
    CHECK(last.low == Approx(0.6));
    CHECK(last.high == Approx(0.8));
    CHECK(plot.lines[0].dashed);
  }
  const Table numbers = evaluations_table(apart);
  REQUIRE(numbers.rows().size() == 4);
  CHECK(numbers.rows()[3] ==
        std::vector<std::string>{"ring on 2 ranks", "2,000", "2.00", "0.7000", "0.6000", "0.8000"});
  const std::string page = page_of(apart);
  CHECK_THAT(page,
             Contains("fill-opacity=\".16\"") && Contains("<title>ring: test accuracy 0.7 at 2 seconds (0.6 to 0.8)"));
}

TEST_CASE("a click on the legend can hide every curve: names and curves have one number", "[report][study]") {
  const std::string page = page_of(test::made_study());
  for (std::size_t at = page.find("<figure class=\"plot\">"); at != std::string::npos;
       at = page.find("<figure class=\"plot\">", at + 1)) {
    const std::string figure = page.substr(at, page.find("</figure>", at) - at);
    const std::size_t legend = figure.find("class=\"legend\"");
    const std::vector<std::string> curves = values_of(figure.substr(0, legend), "data-line");
    CHECK_FALSE(curves.empty());
    CHECK(curves == values_of(figure.substr(legend), "data-line"));
  }
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
      CHECK(line.dashed == (line.name != same.name));  // the best single worker is "ring .. on 1 rank"
    }
  }
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

}  // namespace echelon
