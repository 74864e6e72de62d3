// SPDX-License-Identifier: Apache-2.0
#include "verify/runner.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "fault/injector.hpp"
#include "verify/watch.hpp"

namespace echelon::verify {
namespace {

constexpr int kControlChannel = 0;

// A rank's result of a check as one text: a letter, then the remark.
struct OwnResult {
  char letter = 'p';
  std::string remark;
  std::string text() const { return letter + remark; }
};

OwnResult result_of(const VerifyCheck& check, VerifyContext& context) {
  try {
    return {'p', check.body(context)};
  } catch (const Skipped& skipped) {
    return {'s', skipped.what()};
  } catch (const std::exception& error) {
    return {'f', error.what()};
  }
}

CheckResult merged(const VerifyCheck& check, const VerifyContext& context, const std::vector<std::string>& texts,
                   double seconds) {
  CheckResult result{
      .group = check.group, .name = check.name, .verdict = CheckVerdict::skipped, .seconds = seconds, .remark = {}};
  std::string passed, skipped, failed;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const std::string remark = texts[rank].substr(1);
    switch (texts[rank].front()) {
      case 'p':
        result.verdict = CheckVerdict::passed;
        passed += passed.empty() ? remark : "";
        break;
      case 's': skipped += skipped.empty() ? remark : ""; break;
      default:
        failed += fmt::format("{}rank {} on {}: {}", failed.empty() ? "" : "; ", rank, context.hosts[rank], remark);
    }
  }
  if (!failed.empty()) result.verdict = CheckVerdict::failed;
  result.remark = !failed.empty() ? failed : result.verdict == CheckVerdict::passed ? passed : skipped;
  return result;
}

// The faults injected into the messages of the checks.
class Faults {
 public:
  Faults(const std::string& sentence, VerifyContext& context) {
    if (sentence.empty()) return;
    Config config;
    config.run.allow_faults = true;
    config.fault.inject = {sentence};
    check_faults(config, context.ranks, false);
    injector_ = make_fault_injector(config, context.rank, context.ranks);
    injector_->begin({.run = context.folder, .attempt = context.folder + "/01"},
                     context.hosts[static_cast<std::size_t>(context.rank)], phase_, true);
    context.transport = [own = injector_.get(), make = context.transport] { return own->around(make()); };
  }
  ~Faults() {
    if (injector_) injector_->end();
  }
  void at(std::int64_t number) {
    phase_.at_step(number);
    phase_.enter("exchange");
  }

 private:
  PhaseBoard phase_;
  std::unique_ptr<FaultInjector> injector_;
};

void print(const CheckResult& result) {
  std::printf("%-8s %s: %s%s%s\n",
              result.verdict == CheckVerdict::passed   ? "passed"
              : result.verdict == CheckVerdict::failed ? "FAILED"
                                                       : "skipped",
              result.group.c_str(), result.name.c_str(), result.remark.empty() ? "" : ": ", result.remark.c_str());
  std::fflush(stdout);
}

void conclude(const std::vector<CheckResult>& results, const RunOptions& options) {
  std::printf("\n%s", table_of(results).c_str());
  std::fflush(stdout);
  if (!options.junit.empty()) write_file_whole(options.junit, junit_of(results));
}

}  // namespace

int run_verification(VerifyContext& context, const std::vector<VerifyCheck>& checks, const RunOptions& options) {
  Engine control(context.transport());
  Group group(control, kControlChannel);
  Faults faults(options.fault, context);
  std::vector<CheckResult> results;
  bool all_well = true;
  // Called by rank 0's watch for a check that does not end.
  const auto give_up = [&](std::size_t number, const std::string& why, double seconds) {
    results.push_back({checks[number].group, checks[number].name, CheckVerdict::failed, seconds, why});
    print(results.back());
    for (std::size_t rest = number + 1; rest < checks.size(); ++rest)
      results.push_back(
          {checks[rest].group, checks[rest].name, CheckVerdict::skipped, 0, "an earlier check did not end"});
    conclude(results, options);
  };
  CheckWatch watch(context, checks, options.grace_s, give_up);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const double begin_s = now_s();
    watch.begins(i);
    faults.at(static_cast<std::int64_t>(i) + 1);
    const OwnResult own = result_of(checks[i], context);
    watch.ends(i, own.letter == 'f' ? own.remark : "");
    const std::vector<std::string> texts = group.gather(own.text());
    watch.is_over();
    if (context.rank > 0) {
      for (const std::string& text : texts) all_well &= text.front() != 'f';
      continue;
    }
    results.push_back(merged(checks[i], context, texts, now_s() - begin_s));
    all_well &= results.back().verdict != CheckVerdict::failed;
    print(results.back());
  }
  if (context.rank == 0) conclude(results, options);
  return all_well ? kExitOk : kExitUnmet;
}

}  // namespace echelon::verify
