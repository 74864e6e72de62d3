// SPDX-License-Identifier: Apache-2.0
// The manual page that `echelon manual` prints: groff renders it without a warning, and it has every verb and key.
#include <catch2/catch.hpp>

#include "cli/args_verbs.hpp"
#include "config/keys.hpp"
#include "tests/run/trial.hpp"

namespace echelon {

using Catch::Contains;

TEST_CASE("the manual page renders, with every verb, option and key", "[run]") {
  const test::Trial trial;
  const std::string groff = "\"$0\" manual | groff -man -ww -Tutf8 -P-c -P-b -P-u";
  const test::Outcome page = test::run_process(
      {.argv = {"bash", "-c", groff, test::echelon_binary()}, .cwd = trial / "", .env = {}, .limit_s = 60});
  CHECK(page.code == 0);
  CHECK(page.err == "");
  for (const cli::Verb& verb : cli::all_verbs()) {
    CHECK_THAT(page.out, Contains(std::string("echelon ") + verb.name));
    CLI::App app;
    app.set_help_flag();
    verb.declare(app);
    for (const CLI::Option* option : app.get_options())
      for (const std::string& name : option->get_lnames()) CHECK_THAT(page.out, Contains("--" + name));
  }
  for (const Key<Config>& key : config_keys()) CHECK_THAT(page.out, Contains(key.path()));
}

}  // namespace echelon
