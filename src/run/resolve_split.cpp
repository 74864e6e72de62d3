// SPDX-License-Identifier: Apache-2.0
#include "run/resolve_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/group.hpp"
#include "comm/link_probe.hpp"
#include "config/batch_plan.hpp"
#include "config/refuse.hpp"
#include "config/roles.hpp"
#include "config/traits/strategies.hpp"
#include "device/peak_rate.hpp"
#include "exchange/entry.hpp"
#include "job/agree.hpp"
#include "parallel/choose.hpp"
#include "parallel/measured_costs.hpp"
#include "parallel/split.hpp"

namespace echelon::inline run {
namespace {

// Returns the samples of a micro-batch; if a split is to be chosen, on the most replicas that the batch allows. Throws
// ConfigError.
std::int64_t measured_batch(const Config& config, int ranks, std::int64_t samples) {
  int replicas = std::max(1, ranks / ranks_of_replica(config.parallel));
  for (; config.parallel.split == "auto" && replicas > 1; --replicas) try {
      return derive_batch(config, replicas, samples).micro.front();
    } catch (const ConfigError&) {
    }
  return derive_batch(config, replicas, samples).micro.front();
}

// Returns the common rate at which all ranks together would take the same time as at their own rates.
double mean_rate(Group& group, double seconds_of_byte) {
  std::vector<double> sum = {seconds_of_byte};
  group.sum(sum);
  return group.size() / sum[0];
}

// Returns the least memory that a rank has of its card, which other ranks may share; 0 if no rank has a card.
double card_part(Group& group, const std::string& card, double bytes) {
  const std::vector<std::string> cards = group.gather(card);
  const std::vector<double> all_bytes = group.gather(bytes);
  double least = 0;
  for (std::size_t r = 0; r < cards.size(); ++r) {
    const double part = all_bytes[r] / static_cast<double>(std::count(cards.begin(), cards.end(), cards[r]));
    if (!cards[r].empty() && (least == 0 || part < least)) least = part;
  }
  return least;
}

}  // namespace

void check_soft(const Config& config, int ranks) {
  const StrategyTraits& strategy = strategy_traits(config.exchange.strategy);
  const int replicas = roles_of(config, ranks).workers / ranks_of_replica(config.parallel);
  if (!strategy.reads_table("asynchronous") || config.exchange.asynchronous.soft <= replicas) return;
  refuse(config, "exchange.asynchronous.soft",
         fmt::format("exchange.asynchronous.soft = {} updates of different workers cannot come from {}; at most {}",
                     config.exchange.asynchronous.soft, counted(replicas, "replica"), replicas));
}

Config config_for_ranks(Config config, int ranks, std::vector<std::string>& notes) {
  if (std::string note = unsplit_alone(config, ranks); !note.empty()) notes.push_back(std::move(note));
  resolve_recurrent_from(config);
  if (const auto factors = static_cast<int>(config.device.pace_factors.size()); factors > ranks)
    notes.push_back(fmt::format("device.pace_factors has {} entries: the first {} {} read, one for each rank", factors,
                                ranks, ranks == 1 ? "is" : "are"));
  return config;
}

bool is_unresolved(const ParallelConfig& parallel) {
  return parallel.split == "auto" || (parallel.costs == "measured" && parallel.pipeline > 1);
}

ResolvedSplit resolve_split(const Config& config, const RunInputs& inputs, const DeviceOptions& device_options,
                            Engine& world, int channel) {
  Group group(world, channel);
  SplitCosts costs;
  double seconds_of_byte = 0, card_bytes = 0;
  std::string card;
  all_or_none(group, [&] {
    const std::int64_t batch = measured_batch(config, world.size(), samples_used(inputs.train, config.data));
    DeviceOptions options = device_options;
    options.memory_limit_bytes = 0;
    const auto device = open_device(config.device.kind, options);
    costs.node_s = measure_costs(inputs.graph, *device, config.device.dtype, batch, world.rank(), world.size());
    if (config.parallel.split != "auto") return;
    seconds_of_byte = 1 / memory_bytes_per_s(*device, wide_of(config.device.dtype));
    card_bytes = static_cast<double>(device->card_bytes());
    card = device->card();
  });
  group.sum(costs.node_s);
  if (config.parallel.split != "auto")
    return {.parallel = config.parallel, .node_s = std::move(costs.node_s), .report = {}};
  // The same numbers everywhere, and so the same choice.
  costs.memory_bytes_per_s = mean_rate(group, seconds_of_byte);
  costs.card_bytes = card_part(group, card, card_bytes);
  costs.network = probe_network(world, channel);
  SplitChoice choice;
  all_or_none(group, [&] {
    const Transport& transport = world.transport();
    choice = choose_split(config, inputs.graph, {transport.hosts(), transport.host_names()},
                          inputs.samples(config.data), costs, exchange_arenas, device_options.index);
  });
  return {.parallel = choice.parallel,
          .node_s = choice.parallel.costs == "measured" ? std::move(costs.node_s) : std::vector<double>(),
          .report = std::move(choice.report)};
}

}  // namespace echelon::inline run
