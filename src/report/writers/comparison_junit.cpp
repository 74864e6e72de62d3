// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/escape.hpp"
#include "report/writers/comparison.hpp"

namespace echelon::inline report {
namespace {

// The text as a quoted attribute.
std::string quoted(const std::string& text) { return "\"" + escaped_for_markup(text) + "\""; }

}  // namespace

std::string comparison_junit(const Comparison& comparison) {
  std::size_t tests = 0;
  for (const ComparedRuns& runs : comparison.runs) tests += runs.figures.size();
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"echelon compare\" tests=\"{}\" "
      "failures=\"{}\">\n",
      tests, comparison.count(Change::worse));
  for (const ComparedRuns& runs : comparison.runs) {
    const auto with = [&](Change verdict) {
      return std::count_if(runs.figures.begin(), runs.figures.end(),
                           [&](const ComparedFigure& figure) { return figure.verdict == verdict; });
    };
    out += fmt::format("  <testsuite name={} tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n", quoted(runs.title),
                       runs.figures.size(), with(Change::worse), with(Change::unknown));
    for (const ComparedFigure& figure : runs.figures) {
      out += fmt::format("    <testcase classname={} name={}", quoted(runs.title), quoted(figure.name));
      const std::string message = quoted(change_sentence(figure, comparison.settings));
      if (figure.verdict == Change::worse)
        out += fmt::format("><failure type=\"regression\" message={}/></testcase>\n", message);
      else if (figure.verdict == Change::unknown)
        out += fmt::format("><skipped message={}/></testcase>\n", message);
      else
        out += "/>\n";
    }
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

}  // namespace echelon::inline report
