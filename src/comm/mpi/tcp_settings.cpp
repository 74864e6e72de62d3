// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/tcp_settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace echelon::inline comm {
namespace {

constexpr const char* kEagerLimit = "OMPI_MCA_btl_tcp_eager_limit";
constexpr const char* kSendBuffer = "OMPI_MCA_btl_tcp_sndbuf";

}  // namespace

int send_buffer_bytes(int card_mbit_per_s) {
  if (card_mbit_per_s <= 0 || card_mbit_per_s > 10'000) return 0;
  return card_mbit_per_s <= 1'000 ? 64 << 10 : 128 << 10;
}

int card_mbit_per_s(const std::string& folder) {
  namespace fs = std::filesystem;
  int fastest = -1;
  std::error_code error;
  for (const auto& card : fs::directory_iterator(folder, error)) {
    std::string state;
    std::ifstream(card.path() / "operstate") >> state;
    int rate = -1;
    if (state == "up" && !fs::exists(card.path() / "bridge", error)) std::ifstream(card.path() / "speed") >> rate;
    fastest = std::max(fastest, rate);
  }
  return fastest;
}

void set_tcp_defaults() {
  ::setenv(kEagerLimit, std::to_string(kEagerBytes).c_str(), 0);
  if (std::getenv(kSendBuffer) != nullptr) return;
  if (const int bytes = send_buffer_bytes(card_mbit_per_s()); bytes > 0)
    ::setenv(kSendBuffer, std::to_string(bytes).c_str(), 0);
}

}  // namespace echelon::inline comm
