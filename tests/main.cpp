// SPDX-License-Identifier: Apache-2.0
// Main program of the rings that need no mpirun: unit, contract, run. The executable's name is the ring's.
#include <filesystem>

#include "tests/support/session.hpp"

int main(int argc, char** argv) {
  const std::string ring = std::filesystem::path(argv[0]).filename().string();
  return echelon::test::run_session(argc, argv, ring.c_str());
}
