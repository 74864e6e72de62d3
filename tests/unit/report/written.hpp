// SPDX-License-Identifier: Apache-2.0
// Writes made-up attempts for tests of reports.
#pragma once

#include <cstdint>
#include <string>

#include "config/schema.hpp"
#include "report/scaling.hpp"

namespace echelon::test {

// One attempt as the program leaves it behind.
struct Written {
  int ranks = 1;
  std::int64_t global = 64;
  double rate = 1000;
  std::string state = "finished";
  bool paced = false;
  double accuracy = 0.975;
  std::int64_t seed = 1;
  bool weak = false;
  ExchangeConfig exchange = {};
  int servers = 0;
  int pipeline = 1;
  std::string algorithm = "ring", hash = "00aa00aa00aa";
};

// Writes config.toml, summary.json and status.json of the attempt into a folder, which it makes.
void write_attempt(const std::string& folder, const Written& run);
// Returns the report as Markdown, with its heading.
std::string markdown_of(const ScalingReport& report);

}  // namespace echelon::test
