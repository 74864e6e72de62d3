#include "cli/mesh_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "device/arenas.hpp"
#include "model/build.hpp"
#include "model/program.hpp"
#include "optim/rules.hpp"
#include "parallel/courier.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/split.hpp"
#include "parallel/stages.hpp"

namespace echelon::cli {
namespace {

struct PartRow {
  std::string layers;
  std::int64_t parameters = 0;
  double bytes = 0;
  bool estimated = false;  // no such device here: twice the values instead of the program's own activations
};

bool is_cut(const Layer& layer) {
  constexpr std::array<std::string_view, 5> kCuts = {"send", "receive", "spread", "sum", "gather"};
  return std::find(kCuts.begin(), kCuts.end(), layer.kind()) != kCuts.end();
}

PartRow row_of(const Config& config, const Graph& graph, std::size_t boxes, int in_flight, std::int64_t micro) {
  PartRow row;
  const DType dtype = config.device.dtype;
  std::vector<std::string> names;
  for (const Node& node : graph.nodes())
    if (!is_cut(*node.layer)) names.push_back(node.name);
  row.layers = names.size() == 1 ? names.front() : names.front() + " to " + names.back();
  row.parameters = graph.parameters().weight_elems();
  const double weights = static_cast<double>(graph.parameters().elems()) * static_cast<double>(size_of(wide_of(dtype)));
  row.bytes =
      weights * (2 + static_cast<double>(find_rule(config.optimiser.rule).arenas())) + static_cast<double>(boxes);
  try {
    DeviceOptions options;
    options.paced_table = config.device.paced_table;
    const auto device = open_device(config.device.kind, options);
    Arenas arenas(*device, graph.parameters(), wide_of(dtype));
    const Program program(graph, arenas, {.batch = micro, .dtype = dtype, .in_flight = in_flight});
    row.bytes += static_cast<double>(program.activation_bytes() + program.scratch_bytes());
  } catch (const EnvironmentError&) {
    row.estimated = true;
    row.bytes += 2 * model_costs(graph, dtype).activation_bytes * static_cast<double>(micro * in_flight);
  }
  return row;
}

}  // namespace

std::string mesh_table(const Config& config, const Graph& graph, const Mesh& mesh, const std::vector<int>& hosts,
                       std::int64_t micro) {
  const std::vector<double> costs = node_flops(graph, config.device.dtype);
  const std::vector<Cut> between = cuts_between(graph, assign_stages(graph, costs, mesh.pipeline()));
  const double elem = static_cast<double>(size_of(config.device.dtype));
  double sent = 0, summed = 0;  // bytes a sample
  for (const Cut& cut : between) sent += static_cast<double>(cut.shape.elems()) * elem * (cut.learns ? 2 : 1);
  std::vector<PartRow> rows;  // by part
  for (int stage = 0; stage < mesh.pipeline(); ++stage) {
    const int in_flight = most_in_flight(
        pipeline_passes(config.parallel.schedule, mesh.pipeline(), stage, static_cast<int>(config.batch.accumulation)));
    for (int shard = 0; shard < mesh.tensor(); ++shard) {
      const Part part = part_of(graph, config.parallel, {.replica = 0, .stage = stage, .shard = shard}, costs);
      rows.push_back(
          row_of(config, part.graph, courier_bytes(part.cuts, stage, micro, config.device.dtype), in_flight, micro));
      for (std::size_t c = between.size(); c < part.cuts.size() && shard == 0; ++c)
        summed += static_cast<double>(part.cuts[c].shape.elems()) * elem;
    }
  }
  Table table({"rank", "host", "replica", "stage", "shard", "layers", "parameters", "memory"});
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const MeshSeat seat = mesh.seat(rank);
    const PartRow& row = rows[static_cast<std::size_t>(mesh.index_in_group(seat))];
    table.row({std::to_string(rank), std::to_string(hosts[static_cast<std::size_t>(rank)]),
               std::to_string(seat.replica), std::to_string(seat.stage), std::to_string(seat.shard), row.layers,
               count_text(row.parameters), (row.estimated ? "about " : "") + bytes_text(row.bytes)});
  }
  std::string text = table.text();
  const int micro_batches = static_cast<int>(config.batch.accumulation);
  if (mesh.pipeline() > 1)
    text += fmt::format("{} between stages, {} a sample, forward and back; {} over {}: bubble at least {:.1f} %{}\n",
                        counted(static_cast<std::int64_t>(between.size()), "tensor"), bytes_text(sent),
                        config.parallel.schedule, counted(micro_batches, "micro-batch"),
                        100 * bubble_share(mesh.pipeline(), micro_batches),
                        micro_batches == 1 ? ", and one micro-batch gains nothing" : "");
  if (mesh.tensor() > 1)
    text += fmt::format("shards sum or gather {} a sample, forward and back\n", bytes_text(summed));
  return text;
}

}  // namespace echelon::cli
