// SPDX-License-Identifier: Apache-2.0
#include "tests/support/python.hpp"

#include <cstdlib>

namespace echelon::test {

Outcome python(std::vector<std::string> words, const std::string& cwd) {
  const char* named = std::getenv("PYTHON");
  words.insert(words.begin(), named != nullptr ? named : "python3");
  Command command;
  command.argv = std::move(words);
  command.cwd = cwd;
  command.env = {{"TF_CPP_MIN_LOG_LEVEL", "3"}};
  command.limit_s = 120;
  return run_process(command);
}

bool has_module(const std::string& name) { return python({"-c", "import " + name}).code == 0; }

}  // namespace echelon::test
