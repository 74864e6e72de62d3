// SPDX-License-Identifier: Apache-2.0
// The traffic of a strategy among ranks that run its protocol on virtual time. Bytes and bandwidths are divided by the
// same number, so that messages are cheap to copy.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "comm/collective/server.hpp"
#include "comm/mpi/tcp_settings.hpp"
#include "comm/protocol/driver.hpp"
#include "comm/virtual/world.hpp"
#include "planner/pace.hpp"
#include "planner/virtual_worker.hpp"

namespace echelon::inline planner {

inline constexpr double kShrunkBytes = 1 << 19;  // sum over all buckets
inline constexpr double kMostMessages = 60'000;
inline constexpr int kEqualSteps = 8, kVaryingSteps = 24;

// The network of the ranks, with bandwidths divided by `shrink`; messages occupy cards as in comm/collective/plan_time.
inline VirtualNetwork virtual_network(const StrategySetting& setting, int ranks, double shrink) {
  const auto link = [&](const Link& from) {
    return VirtualLink{.latency_s = from.latency_s / 2,
                       .bytes_per_s = from.bytes_per_s / shrink,
                       .jitter = 0,
                       .overhead_s = from.latency_s / 2};
  };
  return {.between_hosts = link(setting.network().between),
          .inside_host = link(setting.network().inside),
          .hosts = RankPlacement{.ranks = ranks, .ranks_a_host = setting.pricer.ranks_a_host()}.hosts_of_ranks(),
          .eager_bytes = static_cast<std::size_t>(kEagerBytes / shrink)};
}

// The traffic of a run with its bytes divided by `shrink`; an element is one byte.
struct Traffic {
  Traffic(const StrategySetting& setting, int replicas)
      : shrink(std::max(1.0, setting.work.bytes() / kShrunkBytes)), workers(replicas) {
    const ExchangeConfig& exchange = setting.exchange();
    const int dedicated = static_cast<int>(exchange.server.ranks);
    ranks = replicas + dedicated;
    network = virtual_network(setting, ranks, shrink);
    piece = std::max<std::int64_t>(1, static_cast<std::int64_t>(exchange.segment_kb * 1024 / shrink));
    for (const GradientBucket& bucket : setting.work.buckets) {
      const double bytes = static_cast<double>(bucket.elems) * setting.work.elem_bytes / shrink;
      AllreduceRequest request{.ranks = ranks, .elems = std::max<std::int64_t>(1, std::llround(bytes))};
      request.hosts = network.hosts;
      request.dedicated_servers = dedicated > 0;
      request.servers = dedicated > 0 ? dedicated : static_cast<int>(std::min<std::int64_t>(exchange.servers, ranks));
      parts.push_back(server_parts(request));
      servers = server_count(request);
    }
    scratch.resize(static_cast<std::size_t>(2 * kShrunkBytes) + 4096);
    steps = setting.step.variation.varies() ? kVaryingSteps : kEqualSteps;
  }

  std::vector<double> factors(const StrategySetting& setting, int rank) const {
    return drawn_factors(setting.step.variation, workers, rank, steps);
  }

  // Small control messages are not divided.
  std::size_t frame_bytes() const { return static_cast<std::size_t>(std::max(64.0, kFrameBytes / shrink)); }
  double short_bytes() const { return SendBudget::kShort / shrink; }
  // The priority that the strategies give to bucket b.
  int priority(const StrategySetting& setting, std::size_t b) const {
    return setting.exchange().priority ? static_cast<int>(parts.size() - 1 - b) : 0;
  }

  double shrink;
  int workers, ranks = 1, servers = 1, steps = 1;
  std::int64_t piece = 1;
  int met = 0;               // workers that have reached the end
  std::vector<Parts> parts;  // by bucket
  VirtualNetwork network;
  std::vector<std::byte> scratch;  // the contents of messages do not matter
};

// Runs the actors of all ranks to their end. Returns the seconds from step to step: the mean over the first `workers`
// ranks and all steps except the first quarter. make(rank) returns a pointer to a rank that has an `actor`; ended(rank)
// returns the seconds at which its steps ended.
template <class Make, class Ended>
double run_actors(VirtualWorld& world, int workers, const Make& make, const Ended& ended) {
  std::vector<decltype(make(0))> ranks;
  std::vector<VirtualActor*> actors;
  for (int r = 0; r < world.ranks(); ++r) {
    ranks.push_back(make(r));
    actors.push_back(&*ranks.back()->actor);
  }
  world.run(actors);
  double sum = 0;
  for (int r = 0; r < workers; ++r) {
    const std::vector<double>& ended_s = ended(*ranks[static_cast<std::size_t>(r)]);
    const std::size_t first = ended_s.size() / 4;
    sum += (ended_s.back() - ended_s[first]) / static_cast<double>(ended_s.size() - 1 - first);
  }
  return sum / workers;
}

// Rank(setting, traffic, rank, world) has an `actor` and, if it trains, a `worker`.
template <class Rank>
double run_virtual(const StrategySetting& setting, int replicas) {
  Traffic traffic(setting, replicas);
  VirtualWorld world(traffic.ranks, traffic.network);
  return run_actors(
      world, traffic.workers, [&](int rank) { return std::make_unique<Rank>(setting, traffic, rank, world); },
      [](const Rank& rank) -> const std::vector<double>& { return rank.worker->ended_s(); });
}

}  // namespace echelon::inline planner
