#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/options.hpp"

namespace echelon {
namespace {

int run(std::vector<std::string> words) {
  words.insert(words.begin(), "echelon");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return cli::main_of_cli(static_cast<int>(words.size()), argv.data());
}

TEST_CASE("an unknown verb or flag is refused with the nearest known one", "[cli]") {
  CHECK_THROWS_AS(run({"ifno"}), ConfigError);
  CHECK_THROWS_WITH(run({"ifno"}), Catch::Contains("'ifno'") && Catch::Contains("did you mean 'info'"));
  CHECK_THROWS_WITH(run({"info", "--hepl"}), Catch::Contains("--hepl") && Catch::Contains("did you mean '--help'"));
  CHECK_THROWS_AS(run({"info", "more"}), ConfigError);
  CHECK_THROWS_AS(run({}), ConfigError);
}

}  // namespace
}  // namespace echelon
