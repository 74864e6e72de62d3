// SPDX-License-Identifier: Apache-2.0
// `echelon verify`: intact checks pass, checks broken on purpose are found and named, and its records can be read.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "exchange/entry.hpp"
#include "tests/support/process.hpp"
#include "verify/runner.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Outcome;

TEST_CASE("two ranks verify this machine, and say what they skipped", "[run][verify]") {
  const test::TempFolder folder;
  const Outcome outcome = test::run_echelon({"verify", "--quick", "--dir", "here", "--junit", "verify.xml"},
                                            {.ranks = 2, .cwd = folder.path(), .limit_s = 180});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitOk);
  CHECK_THAT(outcome.out, Contains(" 0 failed, "));
  for (const char* passed : {"passed   all-reduce: halving_doubling", "passed   codec: topk",
                             "passed   k replicas equal one: synchronous, ring: within ",
                             "passed   strategy trains: gossip", "passed   split model equals whole: 2 stages, 1f1b",
                             "passed   device onednn: operations in all layouts", "passed   files: locks exclude",
                             "passed   process: killed, and resumed by the same command: killed after step "})
    CHECK_THAT(outcome.out, Contains(passed));
  // The first form of every strategy that the program lists is trained, and those that equal one replica are compared.
  const Outcome listed = test::run_echelon({"info", "--strategies"});
  CHECK(listed.code == kExitOk);
  std::istringstream lines(listed.out);
  std::size_t forms = 0;
  for (std::string line; std::getline(lines, line); ++forms) {
    const auto form = nlohmann::json::parse(line);
    const std::string name = form.at("name"), strategy = form.at("strategy");
    if (name == strategy) CHECK_THAT(outcome.out, Contains("passed   strategy trains: " + name + ": loss "));
    if (form.at("equals_one")) CHECK_THAT(outcome.out, Contains("passed   k replicas equal one: " + name));
    CHECK(form.at("sets").at(0) == "exchange.strategy=" + strategy);
  }
  CHECK(forms == strategy_cases().size());
  const std::string xml = read_file_whole(folder / "verify.xml");
  CHECK_THAT(xml, Contains("<testsuite name=\"echelon verify\"") && Contains("failures=\"0\"") &&
                      Contains("classname=\"codec\" name=\"fp16\""));
  CHECK(std::filesystem::is_empty(folder / "here"));
}

TEST_CASE("a damaged message is found by the check that it belongs to, and the verification ends with 8",
          "[run][verify]") {
  const test::TempFolder folder;
  const Outcome outcome = test::run_echelon(
      {"verify", "--quick", "--junit", "verify.xml", "--fault", "corrupt message of rank 1 at step 2"},
      {.ranks = 2, .cwd = folder.path(), .limit_s = 120});
  INFO(outcome.out << outcome.err);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.code == kExitUnmet);
  CHECK_THAT(outcome.out, Contains("passed   transport: messages: sizes, order, any source, parts"));
  CHECK_THAT(outcome.out, Contains("FAILED   transport: the same with exchange.check_messages: ") &&
                              Contains("rank 0 on ") && Contains("a message from rank 1 on ") &&
                              Contains("arrived damaged"));
  CHECK_THAT(outcome.out, Contains(" 1 failed, "));
  CHECK_THAT(read_file_whole(folder / "verify.xml"), Contains("failures=\"1\"") && Contains("arrived damaged"));
  CHECK_THAT(outcome.err, Contains("injected fault: \"corrupt message of rank 1 at step 2\""));
}

TEST_CASE("wrong options of verify are refused", "[run][verify]") {
  const test::TempFolder folder;
  const Outcome outcome = test::run_echelon({"verify", "--fault", "break it"}, {.cwd = folder.path()});
  CHECK(outcome.code == kExitConfig);
  CHECK_THAT(outcome.err, Contains("is not a fault"));
}

TEST_CASE("records of checks hold what XML must not be given as it is", "[run][verify]") {
  const std::vector<verify::CheckResult> results = {
      {"a", "b<c>", verify::CheckVerdict::failed, 1.5, "x & \"y\"\nsecond line\x01"},
      {"a", "d", verify::CheckVerdict::skipped, 0, "no GPU"}};
  const std::string xml = verify::junit_of(results);
  CHECK_THAT(xml, Contains("name=\"b&lt;c&gt;\"") && Contains("message=\"x &amp; &quot;y&quot;\"") &&
                      Contains("<skipped message=\"no GPU\"/>") &&
                      Contains("tests=\"2\" failures=\"1\" skipped=\"1\""));
  CHECK(xml.find('\x01') == std::string::npos);
  CHECK_THAT(verify::table_of(results), Contains("0 passed, 1 failed, 1 skipped"));
}

}  // namespace
}  // namespace echelon
