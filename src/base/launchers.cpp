// SPDX-License-Identifier: Apache-2.0
#include "base/launchers.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/environment.hpp"

namespace echelon::inline base {
namespace {

constexpr std::array<std::string_view, 20> kLeft = {"OMPI_COMM_",
                                                    "OMPI_UNIVERSE",
                                                    "OMPI_APP_CTX",
                                                    "OMPI_FIRST_RANKS",
                                                    "OMPI_FILE_LOCATION",
                                                    "OMPI_NUM_",
                                                    "OMPI_ARGV",
                                                    "OMPI_COMMAND",
                                                    "OMPI_MCA_orte_",
                                                    "OMPI_MCA_ess",
                                                    "OMPI_MCA_pmix",
                                                    "OMPI_MCA_shmem_",
                                                    "PMIX_",
                                                    "OMPI_MCA_mpi_oversubscribe",
                                                    "OMPI_MCA_initial_wdir",
                                                    "PRTE_",
                                                    "PMI_",
                                                    "HYDI_",
                                                    "MPI_LOCAL",
                                                    "JSM_NAMESPACE_"};
// Users set these.
constexpr std::array<std::string_view, 2> kKept = {"PMIX_MCA_", "PRTE_MCA_"};

template <std::size_t n>
bool starts_with_one(std::string_view text, const std::array<std::string_view, n>& starts) {
  return std::any_of(starts.begin(), starts.end(), [&](std::string_view start) { return text.starts_with(start); });
}

}  // namespace

const LauncherTraits* launcher_of_process() {
  for (const LauncherTraits& launcher : kLaunchers)
    if (std::getenv(launcher.sign) != nullptr) return &launcher;
  return nullptr;
}

bool connects_ranks(const LauncherTraits& launcher) {
  return launcher.connects == nullptr || std::getenv(launcher.connects) != nullptr ||
         std::getenv("PMIX_RANK") != nullptr;
}

std::int64_t told_number(const char* variable, const char* meaning) {
  if (variable == nullptr) return 0;
  return whole_in_environment(variable, meaning, 1, std::numeric_limits<int>::max()).value_or(0);
}

bool names_rank(std::string_view variable) {
  return std::any_of(kLaunchers.begin(), kLaunchers.end(),
                     [&](const LauncherTraits& launcher) { return variable == launcher.rank; });
}

bool is_left_by_launcher(std::string_view variable) {
  return starts_with_one(variable, kLeft) && !starts_with_one(variable, kKept);
}

}  // namespace echelon::inline base
