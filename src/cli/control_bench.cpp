// SPDX-License-Identifier: Apache-2.0
#include "cli/control_bench.hpp"

#include <bit>
#include <cmath>

#include "cli/control_world.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/group.hpp"
#include "comm/virtual/plan_actor.hpp"
#include "job/loss_watch.hpp"
#include "train/control/calls.hpp"
#include "train/control/control.hpp"
#include "train/control/draws.hpp"
#include "train/control/news.hpp"
#include "train/control/tree.hpp"

namespace echelon::cli {
namespace {

constexpr int kTag = 1;
constexpr double kRound_s = 1;  // virtual time of a round, for machines that do not end a round by themselves

// The rank whose messages take the most links to rank 0: the one with the most bits set.
int deepest(int ranks) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks))) - 1; }

// A different part of kRound_s for each rank, because ranks do not step at the same moment.
double offset_s(int rank) { return kRound_s * std::fmod(0.618 * rank, 1.0); }

void each(MachineWorld& world, const std::function<void(MachineRank& rank, int number)>& what) {
  for (int rank = 0; rank < world.size(); ++rank) what(world.rank(rank), rank);
}

// Passes a round of virtual time, in which each rank calls `what` once.
void pass_time(MachineWorld& world, double seconds, const std::function<void(MachineRank& rank, int number)>& what) {
  const double begin_s = world.now_s();
  each(world, [&](MachineRank& rank, int number) {
    rank.await_time(begin_s + seconds);
    if (what) rank.at(begin_s + offset_s(number) * seconds, [&rank, number, &what] { what(rank, number); });
  });
  world.run();
}

ControlCost of_words(int ranks, int rounds, bool with_times) {
  // If `with_times`, all steps carry times of ranks, otherwise only the first one.
  const std::int64_t sample_every = with_times ? 1 : std::int64_t{1} << 40;
  MachineWorld world(ranks, [&](int rank) { return std::make_unique<ControlTree>(rank, ranks, kTag, sample_every); });
  int links = 0;
  const auto step = [&] {
    links = world.links_of([&] {
      each(world, [](MachineRank& rank, int) {
        rank.machine<ControlTree>().set_words({});
        rank.post(ControlTree::kWords);
      });
    });
  };
  const int every = Control::steps_between_times(ranks);
  ControlCost cost = world.measure(
      with_times ? "control words with times of ranks" : "control words",
      with_times ? (every == 1 ? "each step" : "every " + std::to_string(every) + "th step") : "step", rounds, step);
  cost.links = links;
  return cost;
}

ControlCost of_calls(int ranks, int rounds) {
  MachineWorld world(ranks, [&](int rank) { return std::make_unique<ControlCalls>(rank, ranks, kTag); });
  std::vector<Report> totals(static_cast<std::size_t>(ranks));
  const auto report = [&](MachineRank& rank, int number) {
    rank.machine<ControlCalls>().report(totals[static_cast<std::size_t>(number)], {});
    rank.post(ControlCalls::kReport);
  };
  const auto step = [&] {
    pass_time(world, kRound_s, [&](MachineRank& rank, int number) {
      totals[static_cast<std::size_t>(number)].weight += 1;
      report(rank, number);
    });
  };
  step();  // in the first two steps a rank does not know yet how long its steps are
  step();
  ControlCost cost = world.measure("reports of steps, asynchronous replicas", "step", rounds, step);
  pass_time(world, kRound_s, {});
  cost.links = world.links_of([&] {
    const int asks = deepest(ranks);
    totals[static_cast<std::size_t>(asks)].wishes = 4;
    report(world.rank(asks), asks);
  });
  return cost;
}

ControlCost of_news(int ranks, int rounds) {
  MachineWorld world(ranks, [&](int rank) { return std::make_unique<StepNews>(rank, ranks, kTag, kRound_s); });
  ControlCost cost = world.measure("news of steps, asynchronous replicas", "run.hang_timeout_s / 8", rounds, [&] {
    pass_time(world, kRound_s, [](MachineRank& rank, int) { rank.post(StepNews::kStepped); });
  });
  pass_time(world, kRound_s, {});
  cost.links = world.links_of([&] { world.rank(deepest(ranks)).post(StepNews::kStepped); });
  return cost;
}

ControlCost of_draws(int ranks, int rounds) {
  MachineWorld world(ranks,
                     [&](int rank) { return std::make_unique<DrawMachine>(rank, ranks, kTag, std::int64_t{1} << 40); });
  int links = 0;
  std::int64_t trained = 0;
  ControlCost cost = world.measure("batches drawn, data.balance = \"queue\"", "step", rounds, [&] {
    links = world.links_of([&] {
      each(world, [&](MachineRank& rank, int) {
        rank.machine<DrawMachine>().set_trained(trained);
        rank.post(DrawMachine::kDraw);
      });
    });
    ++trained;
  });
  cost.links = links;
  return cost;
}

ControlCost of_beats(int ranks, int rounds) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank);
  constexpr double kTimeout_s = 10 * kRound_s;
  MachineWorld world(ranks, [&](int rank) { return std::make_unique<LossWatch>(rank, hosts, kTimeout_s); });
  ControlCost cost = world.measure("beats, run.on_lost_worker = \"continue\"", "run.hang_timeout_s / 10", rounds,
                                   [&] { pass_time(world, kRound_s, {}); });
  cost.links = 1;
  return cost;
}

using MakePlan = std::function<std::shared_ptr<const Plan>(int rank)>;

// One plan on all ranks, built anew in each round as a Group does; `bytes`: size of the buffer.
ControlCost of_plan(std::string part, int ranks, int rounds, std::size_t bytes, DType dtype, const MakePlan& make) {
  const auto k = static_cast<std::size_t>(ranks);
  std::vector<std::vector<double>> by_rank(k);
  std::vector<double> sent, received, sent_bytes, held, cpu_s, peers;
  int links = 0;
  std::vector<std::byte> buffer(bytes);  // shared by all ranks, because values do not matter
  for (int round = 0; round < rounds; ++round) {
    VirtualWorld world(ranks, network_of_links());
    std::vector<Meter> meters(k);
    struct Own final : VirtualActor {
      Own(Meter& of, std::unique_ptr<Transport> metered, const MakePlan& make, int rank, void* data, DType dtype)
          : meter(of), transport(metered.get()) {
        const Metered own(meter);
        actor.emplace(std::move(metered), make(rank), data, dtype, kTag);
      }
      bool pass() override {
        const Metered own(meter);
        return actor->pass();
      }
      bool done() const override { return actor->done(); }
      Meter& meter;
      const Transport* transport;
      std::optional<PlanActor> actor;
    };
    std::vector<std::unique_ptr<Own>> ranks_here;
    std::vector<VirtualActor*> actors;
    for (std::size_t r = 0; r < k; ++r) {
      const int rank = static_cast<int>(r);
      ranks_here.push_back(std::make_unique<Own>(meters[r],
                                                 std::make_unique<MeteredTransport>(world.transport(rank), meters[r]),
                                                 make, rank, buffer.data(), dtype));
      actors.push_back(ranks_here.back().get());
    }
    world.run(actors);
    links = static_cast<int>(std::lround(world.clock().now_s() / kLink_s));
    for (std::size_t r = 0; r < k; ++r) by_rank[r].push_back(meters[r].seconds);
    if (round + 1 < rounds) continue;
    const std::vector<int> touched = world.peers_touched();
    for (std::size_t r = 0; r < k; ++r) {
      const WireCounters counters = ranks_here[r]->transport->counters();
      sent.push_back(static_cast<double>(counters.messages_sent));
      received.push_back(static_cast<double>(counters.messages_received));
      sent_bytes.push_back(static_cast<double>(counters.bytes_sent));
      held.push_back(static_cast<double>(meters[r].bytes));
      cpu_s.push_back(median_of(by_rank[r]));
      peers.push_back(touched[r]);
    }
  }
  return {.part = std::move(part),
          .round = "call",
          .sent = over_ranks(sent),
          .received = over_ranks(received),
          .sent_bytes = over_ranks(sent_bytes),
          .links = links,
          .peers = over_ranks(peers),
          .held_bytes = over_ranks(held),
          .cpu_s = over_ranks(cpu_s)};
}

}  // namespace

std::vector<ControlCost> measure_machines(int ranks, int rounds) {
  std::vector<ControlCost> costs = {of_words(ranks, rounds, false), of_words(ranks, rounds, true),
                                    of_calls(ranks, rounds),        of_news(ranks, rounds),
                                    of_beats(ranks, rounds),        of_draws(ranks, rounds)};
  return costs;
}

std::vector<ControlCost> measure_collectives(int ranks, int rounds) {
  const auto sum = [&](const char* part, std::int64_t values) {
    return of_plan(part, ranks, rounds, static_cast<std::size_t>(values) * sizeof(double), DType::f64,
                   [=](int rank) { return Group::plan_of_sum(rank, ranks, values); });
  };
  const auto k = static_cast<std::size_t>(ranks);
  return {sum("errors common to all, barrier: sum of 1 value", 1),
          sum("agreement of replicas: sum of 16 values", 16),
          sum("batch norm over replicas: sum of 2 x 2,048 values", 4096),
          sum("evaluation: sum of 3 values a replica", 3 * std::int64_t{ranks}),
          of_plan("broadcast of 1 KiB", ranks, rounds, 1024, DType::u8,
                  [=](int rank) { return make_broadcast(rank, ranks, 0, 1024); }),
          of_plan("all-gather of 8 bytes a rank", ranks, rounds, k * 8, DType::u8,
                  [=](int rank) { return make_allgather(rank, ranks, 8); })};
}

}  // namespace echelon::cli
