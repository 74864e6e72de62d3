// SPDX-License-Identifier: Apache-2.0
// Experiments that must be refused, and the text that each refusal must have. The unit ring reads them through the
// parser, the run ring through the program.
#pragma once

#include <string>
#include <vector>

namespace echelon::test {

struct BadConfig {
  std::string what;                    // describes the fault
  std::string text;                    // the config file
  std::vector<std::string> fragments;  // parts of the message; "@7:3" stands for "<file>:7:3: "
  std::vector<std::string> sets = {};
  std::vector<std::pair<std::string, std::string>> environment = {};
  int replicas = 1;
};

// A small experiment that is accepted as it stands.
const std::string& good_config();
const std::vector<BadConfig>& bad_configs();
// More such experiments, with faults in [device], in [exchange], and in schedules and the augmentation of images.
const std::vector<BadConfig>& bad_device_configs();
const std::vector<BadConfig>& bad_exchange_configs();
const std::vector<BadConfig>& bad_recipe_configs();

// A small experiment with train.reproducible = true, and ones of its kind that must be refused.
const std::string& good_reproducible_config();
const std::vector<BadConfig>& bad_reproducible_configs();

}  // namespace echelon::test
