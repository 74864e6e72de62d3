// SPDX-License-Identifier: Apache-2.0
#include "parallel/footprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <new>

#include "base/error.hpp"
#include "device/arenas.hpp"
#include "device/upload.hpp"
#include "model/build.hpp"
#include "model/device_options.hpp"
#include "model/program.hpp"
#include "optim/optimiser.hpp"
#include "parallel/activation_exchange.hpp"
#include "parallel/pipeline.hpp"

namespace echelon::inline parallel {

std::unique_ptr<Device> counting_device(const DeviceConfig& config, int index) {
  DeviceOptions options = device_options(config, std::max(1, static_cast<int>(config.threads)));
  options.memory_limit_bytes = 0;  // footprints above the limit are counted too
  options.only_counts = true;
  options.index = index;
  return open_device(config.kind, options);
}

namespace {

// The data that determines the memory of the programs.
struct Holding {
  const Graph& evaluated;
  const std::vector<const Graph*>& trained;
  const RankBatches& batches;
  int in_flight = 1;
};

// Slots of recurrent states by micro-batch, as in StepRunner.
std::map<std::int64_t, int> slots_of(const RankBatches& batches) {
  std::map<std::int64_t, int> slots;
  for (const std::int64_t micro : batches.micro) slots[micro] += static_cast<int>(batches.accumulation);
  return slots;
}

// For an optimiser that is constructed but takes no step.
class NoSums final : public PartSums {
 public:
  bool counts_shared() const override { return true; }
  void over_model(std::span<double>) override {}
  void over_slices(std::span<double>) override {}
};

void count(const Config& config, const Holding& holding, Device* counting, Footprint& bytes) {
  const auto own = counting ? nullptr : counting_device(config.device);
  Device* const device = counting ? counting : own.get();
  const auto held = [&] { return static_cast<double>(device->allocated_bytes()); };
  Arenas arenas(*device, holding.evaluated.parameters(), wide_of(config.device.dtype));
  double before = held();
  NoSums sums;
  const Optimiser optimiser(config.optimiser, arenas, {}, &sums);
  bytes.optimiser = held() - before;
  const DType dtype = config.device.dtype;
  std::vector<std::unique_ptr<Program>> programs;
  std::size_t inputs = 0;  // bytes of the inputs of the largest micro-batch
  for (const auto& [micro, slots] : slots_of(holding.batches))
    for (const Graph* graph : holding.trained) {
      const ProgramOptions options{
          .batch = micro, .dtype = dtype, .state_slots = slots, .in_flight = holding.in_flight};
      const auto& program = programs.emplace_back(std::make_unique<Program>(*graph, arenas, options));
      bytes.activations += static_cast<double>(program->activation_bytes());
      bytes.scratch += static_cast<double>(program->scratch_bytes());
      inputs = std::max(inputs, program->input_bytes());
    }
  const Upload upload(*device, inputs);
  bytes.uploads = static_cast<double>(upload.device_bytes());
  before = held();
  if (holding.batches.evaluation > 0) {
    const ProgramOptions options{.batch = holding.batches.evaluation, .training = false, .dtype = dtype};
    programs.push_back(std::make_unique<Program>(holding.evaluated, arenas, options));
    bytes.evaluation = held() - before;
  }
  bytes.packed = held() - bytes.total();
}

void estimate(const Config& config, const Holding& holding, Footprint& bytes) {
  const DType dtype = config.device.dtype;
  bytes.optimiser = bytes.weights * static_cast<double>(rule_of(config.optimiser).arenas());
  bytes.activations = bytes.scratch = bytes.evaluation = bytes.packed = 0;
  bytes.estimated = true;
  for (const auto& [micro, slots] : slots_of(holding.batches))
    for (const Graph* graph : holding.trained)
      bytes.activations +=
          2 * model_costs(*graph, dtype).activation_bytes * static_cast<double>(micro * holding.in_flight);
  bytes.evaluation =
      model_costs(holding.evaluated, dtype).activation_bytes * static_cast<double>(holding.batches.evaluation);
}

Footprint footprint(const Config& config, const Holding& holding, Device* counting = nullptr) {
  const auto value = static_cast<double>(size_of(wide_of(config.device.dtype)));
  const double arena = static_cast<double>(holding.evaluated.parameters().elems()) * value;
  const double frozen = static_cast<double>(holding.evaluated.parameters().frozen_elems()) * value;
  Footprint bytes{.weights = arena + frozen, .gradients = arena};
  try {
    count(config, holding, counting, bytes);
  } catch (const EnvironmentError&) {
    estimate(config, holding, bytes);
  } catch (const std::bad_alloc&) {  // even the data that ops keep beside tensors
    throw MemoryError(
        fmt::format("batches of {} samples need more memory than this machine has; use a smaller batch or a "
                    "larger batch.accumulation",
                    holding.batches.largest()));
  }
  const RankBatches& batches = holding.batches;
  set_strategy_memory(
      config,
      batches.exchange ? batches.exchange(config, holding.evaluated.parameters(), batches.replicas) : ExchangeArenas(),
      batches.replicas, bytes);
  if (config.train.reproducible)  // finished subtrees of micro-shards, train/micro_shards.hpp
    bytes.gradients += arena * std::log2(static_cast<double>(holding.batches.accumulation));
  return bytes;
}

int in_flight_of(const Config& config, int stage, const RankBatches& batches) {
  const std::int64_t passes = batches.accumulation * static_cast<std::int64_t>(batches.micro.size());
  return most_in_flight(pipeline_passes(config.parallel.schedule, static_cast<int>(config.parallel.pipeline), stage,
                                        static_cast<int>(passes)));
}

}  // namespace

void set_strategy_memory(const Config& config, const ExchangeArenas& arenas, int replicas, Footprint& bytes) {
  const double arena = bytes.weights;
  bytes.strategy = arena * arenas.device;
  bytes.host = arena * arenas.host;
  bytes.checkpoint = config.checkpoint.asynchronous ? bytes.saved() + arena * arenas.whole : 0;
  if (replicas > 1) bytes.checkpoint += arena * arenas.own * replicas;
}

std::int64_t RankBatches::largest() const {
  return std::max(*std::max_element(micro.begin(), micro.end()), evaluation);
}

RankBatches busiest_batches(const Config& config, const BatchPlan& batch, int replicas, std::int64_t test_samples,
                            CountArenas exchange) {
  RankBatches batches{
      .micro = batch.micro, .accumulation = batch.accumulation, .replicas = replicas, .exchange = exchange};
  if (batch.micro.size() <= static_cast<std::size_t>(replicas))
    batches.micro = {*std::max_element(batch.micro.begin(), batch.micro.end()) *
                     (config.data.balance == Balance::speed ? kMostShare : 1)};
  if (test_samples > 0) {
    const std::vector<std::int64_t> tests = evaluation_batches(config, test_samples, replicas);
    batches.evaluation = *std::max_element(tests.begin(), tests.end());
  }
  return batches;
}

Footprint footprint_of(const Config& config, const Graph& graph, const RankBatches& batches,
                       const std::vector<const Graph*>& by_length) {
  const std::vector<const Graph*> alone = {&graph};
  return footprint(config, {.evaluated = graph,
                            .trained = by_length.empty() ? alone : by_length,
                            .batches = batches,
                            .in_flight = in_flight_of(config, 0, batches)});
}

Footprint footprint_of(const Config& config, const Part& part, const MeshCoord& coord, const RankBatches& batches,
                       Device* counting) {
  const std::vector<const Graph*> alone = {&part.graph};
  Footprint bytes = footprint(config,
                              {.evaluated = part.graph,
                               .trained = alone,
                               .batches = batches,
                               .in_flight = in_flight_of(config, coord.stage, batches)},
                              counting);
  if (coord.replica > 0 || coord.spatial_shard > 0) bytes.checkpoint = 0;
  if (config.parallel.allow_across_nodes)
    bytes.transfer_buffers =
        static_cast<double>(transfer_buffer_bytes(part.cuts, coord, batches.largest(), config.device.dtype));
  return bytes;
}

}  // namespace echelon::inline parallel
