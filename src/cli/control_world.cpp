// SPDX-License-Identifier: Apache-2.0
#include "cli/control_world.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace echelon::cli {

VirtualNetwork network_of_links() {
  const VirtualLink link{.latency_s = kLink_s, .bytes_per_s = 1e18};
  return {.between_hosts = link, .inside_host = link, .hosts = {}, .eager_bytes = std::size_t{1} << 40};
}

BusiestAndMean over_ranks(const std::vector<double>& by_rank) {
  return {.busiest = *std::max_element(by_rank.begin(), by_rank.end()),
          .mean = std::accumulate(by_rank.begin(), by_rank.end(), 0.0) / static_cast<double>(by_rank.size())};
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

MachineRank::MachineRank(VirtualWorld& world, int rank, const std::function<std::unique_ptr<Machine>(int rank)>& make) {
  auto transport = std::make_unique<MeteredTransport>(world.transport(rank), meter_);
  transport_ = transport.get();
  const Metered own(meter_);
  machine_ = make(rank);
  actor_.emplace(std::move(transport), *machine_, static_cast<ProtocolHost&>(*this), [] { return true; });
}

bool MachineRank::pass() {
  const Metered own(meter_);
  return actor_->pass();
}

double MachineRank::wakes_at_s() const {
  const double wakes_s = actor_->wakes_at_s();
  return until_s_ > actor_->now_s() ? std::min(wakes_s, until_s_) : wakes_s;
}

MachineWorld::MachineWorld(int ranks, const std::function<std::unique_ptr<Machine>(int rank)>& make)
    : world_(ranks, network_of_links()) {
  for (int rank = 0; rank < ranks; ++rank) {
    ranks_.push_back(std::make_unique<MachineRank>(world_, rank, make));
    actors_.push_back(ranks_.back().get());
  }
}

void MachineWorld::run() { world_.run(actors_); }

int MachineWorld::links_of(const std::function<void()>& begin) {
  const double start_s = now_s();
  for (const auto& rank : ranks_) rank->await(1);
  begin();
  run();
  return static_cast<int>(std::lround((now_s() - start_s) / kLink_s));
}

ControlCost MachineWorld::measure(std::string part, std::string unit, int rounds, const std::function<void()>& round) {
  round();
  const std::size_t k = ranks_.size();
  std::vector<WireCounters> before;
  for (const auto& rank : ranks_) before.push_back(rank->counters());
  std::vector<std::vector<double>> seconds(k);
  for (int i = 0; i < rounds; ++i) {
    std::vector<double> start_s;
    for (const auto& rank : ranks_) start_s.push_back(rank->meter().seconds);
    round();
    for (std::size_t r = 0; r < k; ++r) seconds[r].push_back(ranks_[r]->meter().seconds - start_s[r]);
  }
  std::vector<double> sent, received, bytes, peers, held, cpu_s;
  const std::vector<int> touched = world_.peers_touched();
  for (std::size_t r = 0; r < k; ++r) {
    const WireCounters now = ranks_[r]->counters();
    const auto a_round = [&](std::uint64_t WireCounters::*what) {
      return static_cast<double>(now.*what - before[r].*what) / rounds;
    };
    sent.push_back(a_round(&WireCounters::messages_sent));
    received.push_back(a_round(&WireCounters::messages_received));
    bytes.push_back(a_round(&WireCounters::bytes_sent));
    peers.push_back(touched[r]);
    held.push_back(static_cast<double>(ranks_[r]->meter().bytes));
    cpu_s.push_back(median_of(seconds[r]));
  }
  return {.part = std::move(part),
          .round = std::move(unit),
          .sent = over_ranks(sent),
          .received = over_ranks(received),
          .sent_bytes = over_ranks(bytes),
          .peers = over_ranks(peers),
          .held_bytes = over_ranks(held),
          .cpu_s = over_ranks(cpu_s)};
}

}  // namespace echelon::cli
