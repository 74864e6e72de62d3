// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "verify/runner.hpp"

namespace echelon::verify {
namespace {

const char* word_of(CheckVerdict verdict) {
  switch (verdict) {
    case CheckVerdict::passed: return "passed";
    case CheckVerdict::failed: return "FAILED";
    case CheckVerdict::skipped: return "skipped";
  }
  return "?";
}

// Escapes text for XML attributes and text; control characters, which XML forbids, become spaces.
std::string escaped(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }, ' ');
  for (const auto& [from, to] : {std::pair{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}})
    text = replaced(text, from, to);
  return text;
}

std::int64_t count(const std::vector<CheckResult>& results, CheckVerdict verdict) {
  return std::count_if(results.begin(), results.end(), [&](const CheckResult& r) { return r.verdict == verdict; });
}

// The first line of a remark, cut to fit a table; the whole remark was printed before.
std::string short_remark(const std::string& remark) {
  constexpr std::size_t kMost = 72;
  const std::string line = remark.substr(0, remark.find('\n'));
  return line.size() <= kMost ? line : line.substr(0, kMost) + " ..";
}

}  // namespace

std::string table_of(const std::vector<CheckResult>& results) {
  Table table({"what", "check", "result", "time", "remark"});
  for (const CheckResult& result : results)
    table.row({result.group, result.name, word_of(result.verdict), seconds_text(result.seconds),
               replaced(short_remark(result.remark), "\t", " ")});
  return fmt::format("{}\n{} passed, {} failed, {} skipped\n", table.text(), count(results, CheckVerdict::passed),
                     count(results, CheckVerdict::failed), count(results, CheckVerdict::skipped));
}

std::string junit_of(const std::vector<CheckResult>& results) {
  double seconds = 0;
  std::string cases;
  for (const CheckResult& result : results) {
    seconds += result.seconds;
    cases += fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"", escaped(result.group),
                         escaped(result.name), result.seconds);
    const std::string remark = escaped(result.remark);
    switch (result.verdict) {
      case CheckVerdict::passed: cases += "/>\n"; break;
      case CheckVerdict::failed:
        cases += fmt::format(">\n    <failure message=\"{}\">{}</failure>\n  </testcase>\n",
                             remark.substr(0, remark.find('\n')), remark);
        break;
      case CheckVerdict::skipped:
        cases += fmt::format(">\n    <skipped message=\"{}\"/>\n  </testcase>\n", remark);
        break;
    }
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"echelon verify\" tests=\"{}\" "
      "failures=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n{}</testsuite>\n",
      results.size(), count(results, CheckVerdict::failed), count(results, CheckVerdict::skipped), seconds, cases);
}

}  // namespace echelon::verify
