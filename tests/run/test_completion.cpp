// SPDX-License-Identifier: Apache-2.0
// Tests the words that bash offers after the beginning of a command line, by the script that `echelon completion bash`
// prints.
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "tests/run/trial.hpp"

namespace echelon {
namespace {

// `words`: as bash splits them, at spaces and at "=".
std::set<std::string> offered(const test::Trial& trial, const std::string& words) {
  const std::string script = "source <(\"$0\" completion bash); COMP_WORDS=(" + words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _echelon; printf '%s\\n' \"${COMPREPLY[@]}\"";
  const test::Outcome outcome = test::run_process(
      {.argv = {"bash", "--norc", "-c", script, test::echelon_binary()}, .cwd = trial / "", .env = {}, .limit_s = 60});
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
  std::istringstream lines(outcome.out);
  std::set<std::string> all;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) all.insert(line);
  return all;
}

using Words = std::set<std::string>;

TEST_CASE("bash completes verbs, options, files, keys and their words", "[run]") {
  const test::Trial trial;
  CHECK(offered(trial, "echelon tr") == Words{"train"});
  CHECK(offered(trial, "echelon bench ''").contains("allreduce"));
  CHECK(offered(trial, "echelon train --loc") == Words{"--local-ranks"});
  CHECK(offered(trial, "echelon bench allreduce --algo") == Words{"--algorithms"});
  CHECK(offered(trial, "echelon train trial.toml --set exchange.cod") ==
        Words{"exchange.code_sums=", "exchange.codec=", "exchange.codec_warmup_steps="});
  CHECK(offered(trial, "echelon train trial.toml --set exchange.codec = one") == Words{"onebit"});
  CHECK(offered(trial, "echelon train trial.toml --set train.reproducible =") == Words{"false", "true"});
  CHECK(offered(trial, "echelon train tri") == Words{"trial.toml"});
  CHECK(offered(trial, "echelon train trial.toml --set = exchange.codec_w") == Words{"exchange.codec_warmup_steps="});
}

}  // namespace
}  // namespace echelon
