// SPDX-License-Identifier: Apache-2.0
// ECHELON_MAX_ISA makes a machine behave as a smaller one, in this program's bodies and in oneDNN's.
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/processor.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/skip.hpp"

namespace echelon {

using Catch::Contains;

TEST_CASE("a limit of the processor's instructions holds for our own bodies and for oneDNN's", "[run][isa]") {
  const auto info = [](const std::string& limit) {
    return test::run_echelon({"info"}, {.env = {{"ECHELON_MAX_ISA", limit}}});
  };
  const test::Outcome small = info("avx2");
  INFO(small.out << small.err);
  REQUIRE(small.code == kExitOk);
  CHECK_THAT(small.out, Contains("avx2, limited by ECHELON_MAX_ISA=avx2 (the processor has") && Contains(", AVX2") &&
                            !Contains(", AVX-512") && Contains("has none of AVX512_BF16"));
  const test::Outcome middle = info("AVX512_CORE");
  CHECK_THAT(middle.out,
             Contains("limited by ECHELON_MAX_ISA=avx512_core") && !Contains("with BF16") && !Contains("with AMX"));
  for (const char* limit : {"avx512_core_bf16", "avx512_core_amx", ""}) CHECK(info(limit).code == kExitOk);

  // oneDNN reports for each body which instructions it uses.
  const test::Trial trial;
  const std::vector<std::string> step = {"bench", "step", "trial.toml", "--steps", "1", "--ops"};
  const test::Outcome ops = test::run_echelon(step, {.cwd = trial / "", .env = {{"ECHELON_MAX_ISA", "avx2"}}});
  INFO(ops.out << ops.err);
  REQUIRE(ops.code == kExitOk);
  CHECK_THAT(ops.out, Contains("avx2") && !Contains("avx512"));
  if (test::skip_without(processor_has(Isa::avx512), test::Lacks::processor, "needs a processor with AVX-512")) return;
  CHECK_THAT(test::run_echelon(step, {.cwd = trial / ""}).out, Contains("avx512"));
}

TEST_CASE("a limit that is no name of an ISA is refused by every verb, with the names", "[run][isa]") {
  const test::Trial trial;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"info"}, {"check", "trial.toml"}, {"train", "trial.toml"}}) {
    const test::Outcome refused = test::run_echelon(words, {.cwd = trial / "", .env = {{"ECHELON_MAX_ISA", "avx3"}}});
    INFO(refused.out << refused.err);
    CHECK(refused.code == kExitEnvironment);
    CHECK_THAT(refused.err, Contains("ECHELON_MAX_ISA: unknown ISA 'avx3' (did you mean 'avx2'?); known: avx2, "
                                     "avx512_core, avx512_core_bf16, avx512_core_amx"));
  }
}

TEST_CASE("a reproducible run refuses ranks with unlike instructions", "[run][isa]") {
  if (test::skip_without(processor_has(Isa::avx512), test::Lacks::processor, "needs a processor with AVX-512")) return;
  const test::Trial trial;
  const test::Sets sets = {"train.reproducible=true", "exchange.algorithm=butterfly", "train.steps=2"};
  const std::vector<std::string> all = trial.words(1, sets);
  test::Command unlike{.argv = all, .cwd = trial / ""};
  const auto program = std::find(all.begin(), all.end(), test::echelon_binary());
  unlike.argv.push_back(":");
  unlike.argv.insert(unlike.argv.end(), {"-n", "1", "-x", "ECHELON_MAX_ISA=avx2"});
  unlike.argv.insert(unlike.argv.end(), program, all.end());
  const test::Outcome refused = test::run_process(unlike);
  INFO(refused.out << refused.err);
  CHECK(refused.code == kExitEnvironment);
  CHECK_THAT(refused.err, Contains("one processor and number of threads") && Contains("AVX2"));
}

}  // namespace echelon
