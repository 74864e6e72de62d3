// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/hash_rng.hpp"
#include "tests/support/backup_world.hpp"

namespace echelon::test {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

double BackupSchedule::weight(int worker, std::int64_t step) const {
  const HashRng random = HashRng(network.seed, "samples").at(at(step));
  const auto samples = static_cast<double>(1 + random.below(at(worker), 3));
  return ragged && random.below(at(100 + worker), 3) > 0 ? 0 : samples;
}

double BackupSchedule::whole(std::int64_t step) const {
  double sum = 0;
  for (int w = 0; w < workers; ++w) sum += weight(w, step);
  return sum;
}

BackupSchedule draw_backup_schedule(std::uint64_t seed) {
  const HashRng random(seed, "backup schedule");
  std::uint64_t i = 0;
  const auto below = [&](std::int64_t bound) { return static_cast<std::int64_t>(random.below(i++, at(bound))); };
  BackupSchedule schedule;
  schedule.workers = 1 + static_cast<int>(below(8));
  schedule.needed = schedule.workers - static_cast<int>(below(schedule.workers));
  const bool dedicated = below(3) == 0;
  const int servers = 1 + static_cast<int>(below(4));
  schedule.ranks = schedule.workers + (dedicated ? servers : static_cast<int>(below(2)));
  std::set<int> serving;
  for (int s = 0; s < servers; ++s)
    serving.insert(dedicated ? schedule.workers + s : static_cast<int>(below(schedule.ranks)));
  for (std::int64_t b = 1 + below(4); b > 0; --b) {
    const std::int64_t elems = 1 + below(20);
    std::vector<std::int64_t> cuts{0, elems};
    for (std::size_t s = 1; s < serving.size(); ++s) cuts.push_back(below(elems + 1));
    std::sort(cuts.begin(), cuts.end());
    Parts parts(at(schedule.ranks));
    std::size_t s = 0;
    for (const int server : serving) parts[at(server)] = {cuts[s], cuts[s + 1]}, ++s;
    schedule.parts.push_back(parts);
  }
  schedule.first_step = below(3) == 0 ? below(1000) : 0;
  schedule.steps = 1 + below(20);
  schedule.period = below(2) == 0 ? 1 + below(6) : 1000;
  schedule.ragged = below(3) == 0;
  schedule.quiet_first = below(2) == 0;
  schedule.compute_s = 20e-6 * static_cast<double>(1 + below(10));
  schedule.spread = 0.5 * static_cast<double>(below(4));
  schedule.slowness.assign(at(schedule.workers), 1);
  if (below(2) == 0) schedule.slowness[at(below(schedule.workers))] = 4;
  schedule.sends = 1 + static_cast<int>(below(8));
  schedule.disturbance.assign(at(schedule.ranks), {.seed = seed, .delay_s = below(2) == 0 ? 0 : 40e-6});
  if (below(3) == 0) {
    Disturbance& stopped = schedule.disturbance[at(below(schedule.ranks))];
    stopped.stop_at_s = 100e-6 * static_cast<double>(below(10));
    stopped.stop_for_s = 1e-3;
  }
  schedule.network.between_hosts.jitter = below(3) == 0 ? 30 : static_cast<double>(below(4));
  schedule.network.eager_bytes = below(2) == 0 ? 0 : 1 << 20;
  schedule.network.seed = seed;
  return schedule;
}

BackupSchedule equal_backups(int workers, int needed, std::int64_t steps) {
  BackupSchedule schedule;
  schedule.workers = schedule.ranks = workers;
  schedule.needed = needed;
  schedule.steps = schedule.period = steps;
  const int servers = workers - 1;
  for (int b = 0; b < 2; ++b) {
    Parts& parts = schedule.parts.emplace_back(at(workers));
    for (int s = 0; s < servers; ++s) parts[at(s)] = {10 * s, 10 * (s + 1)};
  }
  schedule.spread = 0.1;
  schedule.slowness.assign(at(workers), 1);
  schedule.disturbance.resize(at(workers));
  return schedule;
}

}  // namespace echelon::test
