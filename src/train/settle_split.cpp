#include "train/settle_split.hpp"

#include <algorithm>
#include <optional>

#include "comm/group.hpp"
#include "comm/link_probe.hpp"
#include "config/derive.hpp"
#include "data/dataset.hpp"
#include "model/build.hpp"
#include "parallel/choose.hpp"
#include "parallel/measured_costs.hpp"
#include "train/agree.hpp"

namespace echelon {

bool leaves_open(const ParallelConfig& parallel) {
  return parallel.split == "auto" || (parallel.costs == "measured" && parallel.pipeline > 1);
}

SettledSplit settle_split(const Config& config, const DeviceOptions& device_options, Engine& world, int channel) {
  Group group(world, channel);
  std::optional<Dataset> train;
  std::optional<Graph> graph;
  SplitCosts costs;
  all_or_none(group, [&] {
    train = open_dataset(config.data.train, config.data);
    graph = build_model(config.model, train->form());
    const BatchPlan batch =
        derive_batch(config, std::max(1, world.size() / ranks_of_replica(config.parallel)), train->samples());
    DeviceOptions options = device_options;
    options.memory_limit_bytes = 0;
    const auto device = open_device(config.device.kind, options);
    costs.node_s = measure_costs(*graph, *device, config.device.dtype, batch.micro.front(), world.rank(), world.size());
  });
  group.sum(costs.node_s);
  if (config.parallel.split != "auto")
    return {.parallel = config.parallel, .node_s = std::move(costs.node_s), .report = {}};
  // The same numbers everywhere, and so the same choice.
  costs.network = probe_network(world, channel);
  SplitChoice choice;
  all_or_none(group, [&] {
    const Transport& transport = world.transport();
    choice = choose_split(config, *graph, {transport.hosts(), transport.host_names()}, train->samples(), costs);
  });
  return {.parallel = choice.parallel,
          .node_s = choice.parallel.costs == "measured" ? std::move(costs.node_s) : std::vector<double>(),
          .report = std::move(choice.report)};
}

}  // namespace echelon
