#include "parallel/footprint.hpp"

#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "device/arenas.hpp"
#include "model/build.hpp"
#include "model/program.hpp"
#include "optim/optimiser.hpp"
#include "parallel/courier.hpp"
#include "parallel/pipeline.hpp"

namespace echelon {

std::unique_ptr<Device> counting_device(const DeviceConfig& config) {
  DeviceOptions options;
  options.threads = std::max(1, static_cast<int>(config.threads));
  options.paced_table = config.paced_table;
  options.only_counts = true;
  return open_device(config.kind, options);
}

namespace {

void count(const Config& config, const std::vector<const Graph*>& graphs, std::int64_t micro, int in_flight,
           Footprint& footprint) {
  const auto device = counting_device(config.device);
  Arenas arenas(*device, graphs.front()->parameters(), wide_of(config.device.dtype));
  const double before = static_cast<double>(device->allocated_bytes());
  const Optimiser optimiser(config.optimiser, arenas);
  footprint.optimiser = static_cast<double>(device->allocated_bytes()) - before;
  std::vector<std::unique_ptr<Program>> programs;
  for (const Graph* graph : graphs) {
    const auto& program = programs.emplace_back(std::make_unique<Program>(
        *graph, arenas, ProgramOptions{.batch = micro, .dtype = config.device.dtype, .in_flight = in_flight}));
    footprint.activations += static_cast<double>(program->activation_bytes());
    footprint.scratch += static_cast<double>(program->scratch_bytes());
  }
  footprint.packed = static_cast<double>(device->allocated_bytes()) - footprint.total();
}

Footprint footprint(const Config& config, const std::vector<const Graph*>& graphs, std::int64_t micro, int in_flight) {
  const DType dtype = config.device.dtype;
  const double arena =
      static_cast<double>(graphs.front()->parameters().elems()) * static_cast<double>(size_of(wide_of(dtype)));
  Footprint bytes{.weights = arena, .gradients = arena};
  try {
    count(config, graphs, micro, in_flight, bytes);
  } catch (const EnvironmentError&) {
    bytes = {.weights = arena,
             .gradients = arena,
             .optimiser = arena * static_cast<double>(find_rule(config.optimiser.rule).arenas()),
             .estimated = true};
    for (const Graph* graph : graphs)
      bytes.activations += 2 * model_costs(*graph, dtype).activation_bytes * static_cast<double>(micro * in_flight);
  }
  return bytes;
}

}  // namespace

Footprint footprint_of(const Config& config, const std::vector<const Graph*>& graphs, std::int64_t micro_batch) {
  return footprint(config, graphs, micro_batch, 1);
}

Footprint footprint_of(const Config& config, const Part& part, const MeshSeat& seat, std::int64_t micro_batch) {
  const int in_flight =
      most_in_flight(pipeline_passes(config.parallel.schedule, static_cast<int>(config.parallel.pipeline), seat.stage,
                                     static_cast<int>(config.batch.accumulation)));
  Footprint bytes = footprint(config, {&part.graph}, micro_batch, in_flight);
  if (config.parallel.allow_across_nodes)
    bytes.boxes = static_cast<double>(courier_bytes(part.cuts, seat, micro_batch, config.device.dtype));
  return bytes;
}

}  // namespace echelon
