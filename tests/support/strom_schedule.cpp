// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "tests/support/strom_observer.hpp"

namespace echelon::test {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

StromSchedule draw_strom_schedule(std::uint64_t seed) {
  const HashRng random(seed, "strom schedule");
  std::uint64_t i = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random.below(i++, static_cast<std::uint64_t>(bound)));
  };
  StromSchedule schedule;
  schedule.ranks = 2 + static_cast<int>(below(6));
  schedule.asynchronous = below(3) > 0;
  schedule.ring = below(2) == 0;
  schedule.dyadic = below(3) == 0;
  schedule.format.dtype = below(2) == 0 ? DType::f32 : DType::f64;
  schedule.format.entropy = below(2) == 0;
  if (below(2) == 0 || schedule.dyadic)
    schedule.format.tau =
        schedule.dyadic ? std::exp2(-static_cast<double>(below(6))) : 0.05 + 0.1 * random.uniform(i++);
  schedule.format.density = 0.01 + 0.4 * random.uniform(i++);
  if (below(3) == 0) schedule.warmup_steps = below(6);
  for (std::int64_t b = 1 + below(3); b > 0; --b) schedule.buckets.push_back(1 + below(below(12) == 0 ? 9000 : 60));
  const std::int64_t epochs = 1 + below(3), most = 1 + below(12);
  const bool ragged = schedule.asynchronous && below(2) == 0;
  for (int r = 0; r < schedule.ranks; ++r) {
    std::vector<std::int64_t>& own = schedule.steps.emplace_back();
    for (std::int64_t e = 0; e < epochs; ++e) own.push_back(ragged ? below(most + 1) : most);
  }
  schedule.compute_s = 20e-6 * static_cast<double>(1 + below(10));
  schedule.spread = 0.5 * static_cast<double>(below(4));
  schedule.slowness.assign(at(schedule.ranks), 1);
  if (below(2) == 0) schedule.slowness[at(below(schedule.ranks))] = below(2) == 0 ? 4 : 40;
  schedule.sends = 1 + static_cast<int>(below(8));
  const double delay_s = below(2) == 0 ? 0 : 40e-6;
  schedule.disturbance.assign(at(schedule.ranks), {.seed = seed, .delay_s = delay_s});
  for (std::size_t r = 0; r < schedule.disturbance.size(); ++r) schedule.disturbance[r].seed = seed * 97 + r;
  if (below(4) == 0) {
    Disturbance& stopped = schedule.disturbance[at(below(schedule.ranks))];
    stopped.stop_at_s = 1e-4 * random.uniform(i++);
    stopped.stop_for_s = 1e-3 * random.uniform(i++);
  }
  schedule.network.between_hosts.jitter = 0.5 * static_cast<double>(below(4));
  schedule.network.eager_bytes = below(2) == 0 ? 64 : 16 << 10;
  schedule.network.seed = seed;
  for (int r = 0; r < schedule.ranks && below(3) == 0; ++r) schedule.network.hosts.push_back(r / 2);
  if (schedule.network.hosts.size() != at(schedule.ranks)) schedule.network.hosts.clear();
  return schedule;
}

StromSchedule equal_replicas(int ranks, std::int64_t steps, bool asynchronous) {
  StromSchedule schedule;
  schedule.ranks = ranks;
  schedule.asynchronous = asynchronous;
  schedule.format = {.dtype = DType::f64, .entropy = false, .tau = 0.0625};
  schedule.buckets = {50};
  schedule.steps.assign(at(ranks), {steps});
  schedule.spread = 0;
  schedule.slowness.assign(at(ranks), 1);
  schedule.disturbance.assign(at(ranks), {});
  return schedule;
}

// Written from the definitions, with messages as lists of (place, change).
std::vector<std::vector<double>> replay_strom(const StromSchedule& schedule, const StromOutcome& recorded) {
  ECHELON_CHECK(schedule.format.tau > 0 && schedule.format.dtype == DType::f64 && schedule.warmup_steps == 0);
  using Message = std::vector<std::pair<std::size_t, double>>;
  const std::size_t k = at(schedule.ranks), n = at(schedule.elems()), buckets = schedule.buckets.size();
  const double tau = static_cast<float>(schedule.format.tau);
  std::vector<std::vector<double>> weights(k, std::vector<double>(n)), residual = weights;
  std::vector<std::vector<std::vector<Message>>> made(k, std::vector<std::vector<Message>>(buckets));
  // By replica: events replayed, messages read per origin and bucket, and steps taken.
  std::vector<std::size_t> done(k);
  std::vector<std::vector<std::vector<std::size_t>>> read(k, {k, std::vector<std::size_t>(buckets)});
  std::vector<std::int64_t> steps(k);
  const auto add = [&](std::size_t w, const Message& message) {
    for (const auto& [i, change] : message) weights[w][i] += change;
  };

  const auto step = [&](std::size_t w, const StromEvent& event) {
    StromOutcome::Bytes before(n * sizeof(double)), after(before.size());
    std::copy(weights[w].begin(), weights[w].end(), reinterpret_cast<double*>(before.data()));
    make_update(schedule, static_cast<int>(w), steps[w]++, before, after);
    std::size_t i = 0;
    for (std::size_t b = 0; b < buckets; ++b) {
      Message message;
      for (const std::size_t end = i + at(schedule.buckets[b]); i < end; ++i) {
        residual[w][i] += reinterpret_cast<const double*>(after.data())[i] - weights[w][i];
        if (event.held[b] || std::abs(static_cast<float>(residual[w][i])) < static_cast<float>(tau)) continue;
        const double change = residual[w][i] < 0 ? -tau : tau;
        residual[w][i] -= change;
        message.emplace_back(i, change);
      }
      if (event.held[b]) continue;
      if (schedule.asynchronous) add(w, message);
      made[w][b].push_back(message);
    }
  };
  // In synchronous rounds a replica's own message has its place among the ranks.
  const auto add_own = [&](std::size_t w, const StromEvent& event) {
    if (schedule.asynchronous || event.origin < static_cast<int>(w)) return;
    const std::size_t b = at(event.bucket);
    std::size_t& own = read[w][w][b];
    if (own == made[w][b].size()) return;
    add(w, made[w][b][own++]);
  };

  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t w = 0; w < k; ++w)
      for (; done[w] < recorded.events[w].size(); ++done[w], moved = true) {
        const StromEvent& event = recorded.events[w][done[w]];
        const std::size_t origin = at(event.origin), b = at(event.bucket);
        if (origin == w) {
          for (std::size_t c = 0; c < buckets && !schedule.asynchronous; ++c)
            for (; read[w][w][c] < made[w][c].size(); ++read[w][w][c]) add(w, made[w][c][read[w][w][c]]);
          step(w, event);
          continue;
        }
        if (read[w][origin][b] == made[origin][b].size()) break;  // the origin's step is not replayed yet
        add_own(w, event);
        add(w, made[origin][b][read[w][origin][b]++]);
      }
  }
  for (std::size_t w = 0; w < k; ++w) {
    ECHELON_CHECK_EQ(done[w], recorded.events[w].size(), "events of rank {} that were replayed", w);
    for (std::size_t c = 0; c < buckets && !schedule.asynchronous; ++c)
      for (; read[w][w][c] < made[w][c].size(); ++read[w][w][c]) add(w, made[w][c][read[w][w][c]]);
  }
  return weights;
}

}  // namespace echelon::test
