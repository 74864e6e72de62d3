// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/fabric_settings.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "comm/mpi/library.hpp"

namespace echelon::inline comm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMatching = "OMPI_MCA_mtl";
constexpr std::array<std::string_view, 2> kClasses = {"sys/class/infiniband", "sys/class/cxi"};
constexpr std::array<std::string_view, 4> kDevices = {"hfi1", "ipath", "cxi", "kgni"};

}  // namespace

bool has_fabric_card(const std::string& root) {
  std::error_code error;
  for (const std::string_view name : kClasses)
    if (fs::directory_iterator(fs::path(root) / name, error) != fs::directory_iterator()) return true;
  for (const auto& device : fs::directory_iterator(fs::path(root) / "dev", error))
    for (const std::string_view name : kDevices)
      if (device.path().filename().string().starts_with(name)) return true;
  return false;
}

void copy_through_shared_memory() {
  if (is_open_mpi()) ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
}

void set_fabric_defaults() {
  if (std::getenv("OMPI_MCA_pml") != nullptr || std::getenv(kMatching) != nullptr || has_fabric_card()) return;
  ::setenv(kMatching, "^ofi,psm,psm2", 1);
}

}  // namespace echelon::inline comm
