// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/fabric_settings.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/process.hpp"

namespace echelon {

TEST_CASE("a host with a card of a fabric is known by its files", "[comm]") {
  const test::TempFolder root;
  CHECK_FALSE(has_fabric_card(root.path()));
  std::filesystem::create_directories(root / "sys/class/infiniband");
  std::filesystem::create_directories(root / "dev");
  std::ofstream(root / "dev/null");
  CHECK_FALSE(has_fabric_card(root.path()));
  SECTION("InfiniBand, RoCE, EFA") { std::filesystem::create_directories(root / "sys/class/infiniband/mlx5_0"); }
  SECTION("Slingshot") { std::filesystem::create_directories(root / "sys/class/cxi/cxi0"); }
  SECTION("Omni-Path") { std::ofstream(root / "dev/hfi1_0"); }
  CHECK(has_fabric_card(root.path()));
}

TEST_CASE("transports of fabrics are left out without a card, and never against the user's choice", "[comm]") {
  const char* chosen = std::getenv("OMPI_MCA_mtl");
  const std::string before = chosen ? chosen : "";
  const auto after = [] {
    set_fabric_defaults();
    const char* value = std::getenv("OMPI_MCA_mtl");
    return std::string(value ? value : "");
  };
  ::setenv("OMPI_MCA_mtl", "psm2", 1);
  CHECK(after() == "psm2");
  ::unsetenv("OMPI_MCA_mtl");
  if (std::getenv("OMPI_MCA_pml") == nullptr) {
    ::setenv("OMPI_MCA_pml", "cm", 1);
    CHECK(after().empty());
    ::unsetenv("OMPI_MCA_pml");
    CHECK(after() == (has_fabric_card() ? "" : "^ofi,psm,psm2"));
  }
  chosen ? ::setenv("OMPI_MCA_mtl", before.c_str(), 1) : ::unsetenv("OMPI_MCA_mtl");
}

}  // namespace echelon
