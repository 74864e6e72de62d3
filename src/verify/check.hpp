// SPDX-License-Identifier: Apache-2.0
// A check of `echelon verify`: tests one promise of the program on this machine, build and launch.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace echelon::verify {

// The surroundings of a check. Equal on all ranks except for `rank`.
struct VerifyContext {
  int rank = 0, ranks = 1;
  std::vector<std::string> hosts;  // [rank]
  bool quick = false;
  std::string folder;   // used only by this verification, on the file system under test; exists
  std::string program;  // this executable
  // Creates a new transport over all ranks. Collective.
  std::function<std::unique_ptr<Transport>()> transport;

  bool one_host() const;
};

// Thrown by a check that is impossible here; what() gives the reason.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Throws Skipped with `reason` if `possible` is false.
void needs(bool possible, const std::string& reason);

struct VerifyCheck {
  std::string group, name;
  // Called on all ranks at once. Returns a remark for the table ("" for none). Throws Skipped, or an error if it fails.
  std::function<std::string(VerifyContext&)> body;
  double limit_s = 60;  // time after which the check has failed and the verification ends
  bool in_quick = true;
};

// The checks of each kind, in the order in which they run.
std::vector<VerifyCheck> message_checks();
std::vector<VerifyCheck> replica_checks();
std::vector<VerifyCheck> split_checks();
std::vector<VerifyCheck> device_checks();
std::vector<VerifyCheck> file_checks();
std::vector<VerifyCheck> process_checks();
std::vector<VerifyCheck> all_checks(bool quick);

}  // namespace echelon::verify
