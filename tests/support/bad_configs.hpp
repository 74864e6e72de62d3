// Experiments that must be refused, and what the refusal must say. The unit ring reads them through the parser, the run
// ring through the program.
#pragma once

#include <string>
#include <vector>

namespace echelon::test {

struct BadConfig {
  std::string what;                    // is wrong
  std::string text;                    // of the file
  std::vector<std::string> fragments;  // of the message; "@7:3" stands for "<file>:7:3: "
  std::vector<std::string> sets = {};
  std::vector<std::pair<std::string, std::string>> environment = {};
  int replicas = 1;
};

// A small experiment that is accepted as it stands.
const std::string& good_config();
const std::vector<BadConfig>& bad_configs();
// The same with more of [device] and of [exchange].
const std::vector<BadConfig>& bad_device_configs();
const std::vector<BadConfig>& bad_exchange_configs();

// The same with train.reproducible = true.
const std::string& good_reproducible_config();
const std::vector<BadConfig>& bad_reproducible_configs();

}  // namespace echelon::test
