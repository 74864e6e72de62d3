// SPDX-License-Identifier: Apache-2.0
#include "train/dealt_draws.hpp"

#include <algorithm>

namespace echelon::inline train {

std::vector<OpenSamples> DealtDraws::gather(Group& workers) {
  std::vector<std::int64_t> firsts;  // not trained yet, by replica
  for (const double trained : workers.gather(static_cast<double>(trained_so_far())))
    firsts.push_back(std::ssize(firsts) + workers.size() * static_cast<std::int64_t>(trained));
  if (workers.rank() != 0) return {};
  const std::int64_t next = *std::max_element(firsts.begin(), firsts.end());
  std::vector<std::int64_t> held;
  for (std::int64_t first : firsts)
    for (; first < next; first += workers.size()) held.push_back(first);
  std::sort(held.begin(), held.end());
  return plan().open_after(next, held);
}

}  // namespace echelon::inline train
