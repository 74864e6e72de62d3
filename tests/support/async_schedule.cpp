// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/hash_rng.hpp"
#include "tests/support/async_world.hpp"

namespace echelon::test {

AsyncSchedule draw_async_schedule(std::uint64_t seed) {
  const HashRng random(seed, "async schedule");
  std::uint64_t i = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random.below(i++, static_cast<std::uint64_t>(bound)));
  };
  AsyncSchedule schedule;
  schedule.workers = 1 + static_cast<int>(below(8));
  const int servers = 1 + static_cast<int>(below(4));
  const bool dedicated = below(3) == 0;
  schedule.ranks = schedule.workers + (dedicated ? servers : static_cast<int>(below(2)));
  std::vector<int> serving;
  for (int s = 0; s < servers; ++s)
    serving.push_back(dedicated ? schedule.workers + s : static_cast<int>(below(schedule.ranks)));
  for (std::int64_t b = 1 + below(4); b > 0; --b) {
    const std::int64_t elems = b == 1 ? 1 + below(20) : below(20);
    std::vector<std::int64_t> cuts{0, elems};
    for (int s = 1; s < servers; ++s) cuts.push_back(below(elems + 1));
    std::sort(cuts.begin(), cuts.end());
    Parts parts(static_cast<std::size_t>(schedule.ranks));
    std::sort(serving.begin(), serving.end());
    serving.erase(std::unique(serving.begin(), serving.end()), serving.end());
    for (std::size_t s = 0; s < serving.size(); ++s)
      parts[static_cast<std::size_t>(serving[s])] = {cuts[s], s + 1 == serving.size() ? elems : cuts[s + 1]};
    schedule.parts.push_back(parts);
  }
  const std::int64_t epochs = 1 + below(3), most = 1 + below(12);
  const bool ragged = below(2) == 0;
  for (int w = 0; w < schedule.workers; ++w) {
    std::vector<std::int64_t>& own = schedule.steps.emplace_back();
    for (std::int64_t e = 0; e < epochs; ++e) own.push_back(ragged ? below(most + 1) : most);
  }
  if (below(2) == 0) schedule.rules.soft = 1 + below(schedule.workers + 2);
  if (below(3) == 0) schedule.rules.drop_above = below(6);
  if (below(3) == 0) schedule.rules.scale = 0.25 + 0.25 * static_cast<double>(below(4));
  if (below(2) == 0) schedule.rules.bound = below(4);
  draw_async_timing(schedule, seed);
  return schedule;
}

void draw_async_timing(AsyncSchedule& schedule, std::uint64_t seed) {
  const HashRng random(seed, "async timing");
  std::uint64_t i = 0;
  const auto below = [&](std::uint64_t bound) { return static_cast<double>(random.below(i++, bound)); };
  schedule.compute_s = 20e-6 * (1 + below(10));
  schedule.spread = 0.5 * below(4);
  schedule.slowness.assign(static_cast<std::size_t>(schedule.workers), 1);
  if (below(2) == 0) schedule.slowness[random.below(i++, schedule.slowness.size())] = 4;
  schedule.sends = 1 + static_cast<int>(below(8));
  const double delay_s = below(2) == 0 ? 0 : 40e-6;
  schedule.disturbance.assign(static_cast<std::size_t>(schedule.ranks), {.seed = seed, .delay_s = delay_s});
  if (below(3) == 0) {
    Disturbance& stopped = schedule.disturbance[random.below(i++, schedule.disturbance.size())];
    stopped.stop_at_s = 100e-6 * below(10);
    stopped.stop_for_s = 1e-3;
  }
  schedule.network.between_hosts.jitter = below(4);
  schedule.network.eager_bytes = below(2) == 0 ? 0 : 1 << 20;
  schedule.network.seed = seed;
}

AsyncSchedule equal_workers(int workers, std::int64_t steps, const AsyncRules& rules) {
  AsyncSchedule schedule;
  schedule.workers = workers;
  schedule.ranks = workers + 1;
  schedule.rules = rules;
  schedule.parts.emplace_back(static_cast<std::size_t>(schedule.ranks)).back() = {0, 3};
  schedule.steps.assign(static_cast<std::size_t>(workers), {steps});
  schedule.spread = 0.2;
  schedule.slowness.assign(static_cast<std::size_t>(workers), 1);
  schedule.disturbance.resize(static_cast<std::size_t>(schedule.ranks));
  return schedule;
}

}  // namespace echelon::test
