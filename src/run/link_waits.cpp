// SPDX-License-Identifier: Apache-2.0
#include "run/link_waits.hpp"

#include <algorithm>

namespace echelon::inline run {
namespace {

bool is_collected(const Engine& engine) {
  return engine.transport().host_names().size() > 1 && engine.size() <= LinkWaitsOfRun::kMostRanks;
}

constexpr int kChannel = 0;  // that of the world's group, which is idle meanwhile
constexpr std::size_t kFigures = sizeof(PeerTime) / sizeof(double);

}  // namespace

LinkWaitsOfRun::LinkWaitsOfRun(Engine& engine, Group& world) : engine_(engine), world_(world) {
  if (!is_collected(engine)) return;
  clocks_before_ = offsets();
  before_ = engine.peer_times();
}

// Ranks of one machine have one clock.
std::vector<ClockOffset> LinkWaitsOfRun::offsets() {
  const std::vector<int>& machines = engine_.transport().machines();
  if (*std::max_element(machines.begin(), machines.end()) == 0)
    return std::vector<ClockOffset>(static_cast<std::size_t>(engine_.size()));
  return estimate_clock_offsets(engine_, kChannel, engine_.clock());
}

// Sums of times are those since the engine was made, and so are the numbers of messages: both ends count the same ones.
// A barrier lets all of them come.
LinkWaits LinkWaitsOfRun::collect(double steps) {
  if (!is_collected(engine_)) return {};
  const std::vector<ClockOffset> after = offsets();
  world_.barrier();
  const std::vector<PeerTime> own = engine_.peer_times();
  std::vector<double> figures;
  for (std::size_t peer = 0; peer < own.size(); ++peer) {
    const PeerTime& of = own[peer];
    figures.insert(figures.end(),
                   {of.sent, of.sent_at_s, of.received, of.received_at_s,
                    of.received_bytes - before_[peer].received_bytes, of.waited_s - before_[peer].waited_s});
  }
  const std::vector<double> all = world_.gather(figures);
  if (world_.rank() != 0) return {};
  const std::size_t ranks = own.size();
  const auto at = [&](std::size_t rank, std::size_t peer) {
    const double* const of = &all[(rank * ranks + peer) * kFigures];
    return PeerTime{.sent = of[0],
                    .sent_at_s = of[1],
                    .received = of[2],
                    .received_at_s = of[3],
                    .received_bytes = of[4],
                    .waited_s = of[5]};
  };
  const auto offset_s = [&](std::size_t rank, double at_s) {
    return offset_at(clocks_before_[rank], after[rank], at_s);
  };
  LinkWaits waits{.hosts = engine_.transport().hosts(), .host_names = engine_.transport().host_names()};
  waits.waited_s.resize(ranks * ranks), waits.transit_s.resize(ranks * ranks), waits.bytes.resize(ranks * ranks);
  for (std::size_t to = 0; to < ranks; ++to)
    for (std::size_t from = 0; from < ranks; ++from) {
      const PeerTime receives = at(to, from), sends = at(from, to);
      const std::size_t index = to * ranks + from;
      if (!(receives.received > 0) || receives.received != sends.sent) continue;
      const double came_s = receives.received_at_s / receives.received, left_s = sends.sent_at_s / sends.sent;
      const double transit_s = (came_s - offset_s(to, came_s)) - (left_s - offset_s(from, left_s));
      waits.waited_s[index] = receives.waited_s / steps;
      waits.transit_s[index] = std::max(0.0, transit_s) * receives.received / steps;
      waits.bytes[index] = receives.received_bytes / steps;
    }
  return waits;
}

}  // namespace echelon::inline run
