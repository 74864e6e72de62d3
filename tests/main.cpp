// The rings that need no mpirun: unit, contract, run. Their name is that of the executable.
#include <filesystem>

#include "tests/support/session.hpp"

int main(int argc, char** argv) {
  const std::string ring = std::filesystem::path(argv[0]).filename().string();
  return echelon::test::run_session(argc, argv, ring.c_str());
}
