// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_RUNNER
#include "tests/support/session.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "h5/file.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/random.hpp"
#include "tests/support/skip.hpp"
#include "verify/ranks.hpp"

namespace echelon::test {
namespace {

constexpr std::size_t kLongestFailure = 2000;

bool skipped_this = false;
std::string first_failure;          // in the current test
std::vector<std::string> skips;     // "gpu: \"name of the test\" reason"
std::vector<std::string> failures;  // printed again at the end, where the tests' own output does not hide them
int passed = 0, failed = 0, skipped = 0;
std::function<bool(const std::string&, bool)> agreement;

// Returns the CPU time of this process and of its children that have ended.
double cpu_s() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return sum;
}

// Appends the times of each test case to the file that ECHELON_TEST_TIMES names.
struct Timer : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo&) override {
    wall_s_ = now_s();
    cpu_s_ = cpu_s();
  }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const char* path = std::getenv("ECHELON_TEST_TIMES");
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
    if (file == nullptr) return;
    std::fprintf(file, "%.2f\t%.2f\t%s\n", now_s() - wall_s_, cpu_s() - cpu_s_, stats.testInfo.name.c_str());
    std::fclose(file);
  }
  double wall_s_ = 0, cpu_s_ = 0;
};
CATCH_REGISTER_LISTENER(Timer)

struct Counter : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo&) override {
    skipped_this = false;
    first_failure.clear();
  }
  bool assertionEnded(const Catch::AssertionStats& stats) override {
    const Catch::AssertionResult& result = stats.assertionResult;
    if (result.isOk() || !first_failure.empty()) return false;
    const Catch::SourceLineInfo& at = result.getSourceInfo();
    first_failure = std::string(at.file) + ":" + std::to_string(at.line) + ": " + result.getExpressionInMacro();
    if (result.hasExpandedExpression()) first_failure += "\n  " + result.getExpandedExpression();
    if (result.hasMessage()) first_failure += "\n  " + result.getMessage();
    for (const Catch::MessageInfo& info : stats.infoMessages) first_failure += "\n  " + info.message;
    if (first_failure.size() > kLongestFailure) first_failure.resize(kLongestFailure);
    return false;
  }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const std::string& name = stats.testInfo.name;
    const bool empty = stats.totals.assertions.total() == 0 && !skipped_this;
    if (empty) std::printf("no assertion ran in \"%s\"\n", name.c_str());
    const bool here = stats.totals.assertions.allOk() && !empty;
    const bool ok = agreement ? agreement(name, here) : here;
    ++(!ok ? failed : skipped_this ? skipped : passed);
    if (ok) return;
    if (first_failure.empty()) first_failure = empty ? "no assertion ran" : "on another rank";
    failures.push_back("\"" + name + "\" " + first_failure);
  }
};
CATCH_REGISTER_LISTENER(Counter)

}  // namespace

bool skip_without(bool present, Lacks what, const std::string& reason) {
  if (present) return false;
  constexpr const char* kNames[] = {"gpu", "processor", "data", "package", "right", "memory", "build", "setting"};
  skipped_this = true;
  skips.push_back(std::string(kNames[static_cast<std::size_t>(what)]) + ": \"" +
                  Catch::getResultCapture().getCurrentTestName() + "\" " + reason);
  std::printf("skipped for %s\n", skips.back().c_str());
  return true;
}

void set_agreement(std::function<bool(const std::string&, bool)> agree) { agreement = std::move(agree); }

int run_session(int argc, char** argv, const char* ring, bool reports) {
  h5::initialise();
  verify::ranks_patience = patience();
  Catch::Session session;
  if (const int code = session.applyCommandLine(argc, argv); code != 0) return code;
  session.run();
  const Catch::ConfigData& asked = session.configData();
  if (asked.listTests || asked.listTags || asked.listTestNamesOnly) return 0;
  if (failed > 0 && reports)
    std::printf("inputs of this run: ECHELON_TEST_SEED=%llu\n", static_cast<unsigned long long>(test_seed()));
  const std::string line = std::to_string(passed) + " passed, " + std::to_string(failed) + " failed, " +
                           std::to_string(skipped) + " skipped";
  if (reports) {
    std::printf("%s: %s\n", ring, line.c_str());
    for (const std::string& failure : failures) std::printf("failed: %s\n", failure.c_str());
    if (const char* path = std::getenv("ECHELON_TEST_SUMMARY"))
      if (std::FILE* file = std::fopen(path, "a")) {
        std::fprintf(file, "%s: %s\n", ring, line.c_str());
        for (const std::string& skip : skips) std::fprintf(file, "skipped for %s\n", skip.c_str());
        for (const std::string& failure : failures) std::fprintf(file, "failed in %s: %s\n", ring, failure.c_str());
        std::fclose(file);
      }
  }
  return failed > 0 || passed + skipped == 0 ? 1 : 0;
}

}  // namespace echelon::test
