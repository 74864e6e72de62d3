// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/tcp_settings.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/process.hpp"

namespace echelon {

TEST_CASE("send buffers follow the fastest card that is up", "[comm]") {
  const test::TempFolder folder;
  const auto card = [&](const std::string& name, const std::string& state, const std::string& speed) {
    std::filesystem::create_directories(folder / name);
    std::ofstream(folder / (name + "/operstate")) << state << '\n';
    if (!speed.empty()) std::ofstream(folder / (name + "/speed")) << speed << '\n';
  };
  CHECK(card_mbit_per_s(folder.path()) == -1);
  card("lo", "unknown", "");
  card("wifi", "up", "");  // reports no rate
  CHECK(card_mbit_per_s(folder.path()) == -1);
  card("eth1", "down", "10000");
  card("eth0", "up", "1000");
  CHECK(card_mbit_per_s(folder.path()) == 1000);
  card("br0", "up", "40000");
  std::filesystem::create_directories(folder / "br0/bridge");
  card("eth2", "up", "-1");
  CHECK(card_mbit_per_s(folder.path()) == 1000);
  card("eth3", "up", "25000");
  CHECK(card_mbit_per_s(folder.path()) == 25000);
  CHECK(card_mbit_per_s(folder / "none") == -1);

  CHECK(send_buffer_bytes(-1) == 0);
  CHECK(send_buffer_bytes(100) == 64 << 10);
  CHECK(send_buffer_bytes(1000) == 64 << 10);
  CHECK(send_buffer_bytes(10000) == 128 << 10);
  CHECK(send_buffer_bytes(25000) == 0);
}

TEST_CASE("settings of the TCP transport that the user gave stay", "[comm]") {
  const char* name = "OMPI_MCA_btl_tcp_eager_limit";
  ::setenv(name, "70000", 1);
  ::setenv("OMPI_MCA_btl_tcp_sndbuf", "1000", 1);
  set_tcp_defaults();
  CHECK(std::string(::getenv(name)) == "70000");
  CHECK(std::string(::getenv("OMPI_MCA_btl_tcp_sndbuf")) == "1000");
  ::unsetenv(name);
  set_tcp_defaults();
  CHECK(std::string(::getenv(name)) == std::to_string(320 << 10));
}

}  // namespace echelon
