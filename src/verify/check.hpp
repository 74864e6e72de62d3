// A check of `echelon verify`: something that the program promises, tried on this machine, build and launch.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace echelon::verify {

// Where a check runs. The same on all ranks but for `rank`.
struct VerifyContext {
  int rank = 0, ranks = 1;
  std::vector<std::string> hosts;  // by rank
  bool quick = false;
  std::string folder;   // of this verification alone, on the file system that is tried; exists
  std::string program;  // this executable
  // A new transport over all ranks. Collective.
  std::function<std::unique_ptr<Transport>()> transport;

  bool one_host() const;
};

// Thrown by a check that cannot be done here; what() is the reason.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Skipped, where `possible` is false.
void needs(bool possible, const std::string& reason);

struct VerifyCheck {
  std::string group, name;
  // On all ranks at once. Returns a remark for the table ("" for none); throws Skipped, or what is wrong.
  std::function<std::string(VerifyContext&)> body;
  double limit_s = 60;  // after which it has failed, and the verification ends
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
