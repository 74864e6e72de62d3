// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/options.hpp"

namespace echelon {
namespace {

int run_command(std::vector<std::string> words) {
  words.insert(words.begin(), "echelon");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return cli::main_of_cli(static_cast<int>(words.size()), argv.data());
}

TEST_CASE("an unknown verb or flag is refused with the nearest known one", "[cli]") {
  CHECK_THROWS_AS(run_command({"ifno"}), ConfigError);
  CHECK_THROWS_WITH(run_command({"ifno"}), Catch::Contains("'ifno'") && Catch::Contains("did you mean 'info'"));
  CHECK_THROWS_WITH(run_command({"info", "--hepl"}),
                    Catch::Contains("--hepl") && Catch::Contains("did you mean '--help'"));
  CHECK_THROWS_AS(run_command({"info", "more"}), ConfigError);
  CHECK_THROWS_AS(run_command({}), ConfigError);
}

}  // namespace
}  // namespace echelon
