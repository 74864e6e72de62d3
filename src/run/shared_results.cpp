// SPDX-License-Identifier: Apache-2.0
#include "run/shared_results.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/clock.hpp"

namespace echelon::inline run {
namespace {

bool appears(const std::string& path, double patience_s) {
  std::error_code ignored;
  for (const double until_s = now_s() + patience_s; !std::filesystem::exists(path, ignored);) {
    if (now_s() > until_s) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

}  // namespace

std::string unshared_results(const RunFolder& folder, const HostSlot& slot, Group& group, double patience_s) {
  const bool looks = slot.local_rank == 0 && slot.rank != 0;
  const bool misses = looks && !appears(folder.attempt + "/status.json", patience_s);
  double missed = misses ? 1 : 0;
  group.sum({&missed, 1});
  if (missed == 0) return {};
  std::string hosts;
  const std::vector<std::string> all = group.gather(misses || slot.rank == 0 ? slot.host : "");
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (!all[rank].empty()) hosts += (hosts.empty() ? "" : ", ") + all[rank];
  if (slot.rank != 0) return {};
  return fmt::format(
      "{}: {} {} not see what rank 0 on {} writes there, so that this run could not continue if rank 0 were on another "
      "host: run.results must be a folder that all hosts share",
      folder.run, hosts, missed > 1 ? "do" : "does", slot.host);
}

}  // namespace echelon::inline run
