// SPDX-License-Identifier: Apache-2.0
// Runs Python programs that read the program's files. PYTHON names another interpreter than python3.
#pragma once

#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace echelon::test {

Outcome python(std::vector<std::string> words, const std::string& cwd = {});
bool has_module(const std::string& name);

}  // namespace echelon::test
