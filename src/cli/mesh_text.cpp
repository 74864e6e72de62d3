#include "cli/mesh_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "device/arenas.hpp"
#include "model/build.hpp"
#include "model/program.hpp"
#include "optim/rules.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/stages.hpp"

namespace echelon::cli {
namespace {

struct StageRow {
  std::string layers;
  std::int64_t parameters = 0;
  double bytes = 0;
  bool estimated = false;  // no such device here: twice the values instead of the program's own activations
};

StageRow row_of(const Config& config, const Graph& graph, int in_flight, std::int64_t micro) {
  StageRow row;
  const DType dtype = config.device.dtype;
  std::vector<std::string> names;
  for (const Node& node : graph.nodes())
    if (node.layer->kind() != "send" && node.layer->kind() != "receive") names.push_back(node.name);
  row.layers = names.size() == 1 ? names.front() : names.front() + " to " + names.back();
  row.parameters = graph.parameters().weight_elems();
  const double weights = static_cast<double>(graph.parameters().elems()) * static_cast<double>(size_of(wide_of(dtype)));
  row.bytes = weights * (2 + static_cast<double>(find_rule(config.optimiser.rule).arenas()));
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
  const std::vector<int> stages = assign_stages(graph, node_flops(graph, config.device.dtype), mesh.pipeline());
  const std::vector<Cut> cuts = cuts_between(graph, stages);
  std::vector<StageRow> rows;
  for (int stage = 0; stage < mesh.pipeline(); ++stage) {
    const int in_flight = most_in_flight(
        pipeline_passes(config.parallel.schedule, mesh.pipeline(), stage, static_cast<int>(config.batch.accumulation)));
    rows.push_back(row_of(config, stage_graph(graph, stages, cuts, stage), in_flight, micro));
  }
  Table table({"rank", "host", "replica", "stage", "layers", "parameters", "memory"});
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const MeshSeat seat = mesh.seat(rank);
    const StageRow& row = rows[static_cast<std::size_t>(seat.stage)];
    table.row({std::to_string(rank), std::to_string(hosts[static_cast<std::size_t>(rank)]),
               std::to_string(seat.replica), std::to_string(seat.stage), row.layers, count_text(row.parameters),
               (row.estimated ? "about " : "") + bytes_text(row.bytes)});
  }
  double travels = 0;
  for (const Cut& cut : cuts)
    travels += static_cast<double>(cut.shape.elems()) * static_cast<double>(size_of(config.device.dtype)) *
               (cut.learns ? 2 : 1);
  const int micro_batches = static_cast<int>(config.batch.accumulation);
  return table.text() +
         fmt::format("{} between stages, {} a sample, forward and back; {} over {}: bubble at least {:.1f} %{}\n",
                     counted(static_cast<std::int64_t>(cuts.size()), "tensor"), bytes_text(travels),
                     config.parallel.schedule, counted(micro_batches, "micro-batch"),
                     100 * bubble_share(mesh.pipeline(), micro_batches),
                     micro_batches == 1 ? ", and one micro-batch gains nothing" : "");
}

}  // namespace echelon::cli
