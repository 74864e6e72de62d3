#include "cli/mesh_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"
#include "model/build.hpp"
#include "parallel/footprint.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/split.hpp"
#include "parallel/stages.hpp"

namespace echelon::cli {
namespace {

struct PartRow {
  std::string layers;
  std::int64_t parameters = 0;
  std::string memory;
};

bool is_cut(const Layer& layer) {
  constexpr std::array<std::string_view, 5> kCuts = {"send", "receive", "spread", "sum", "gather"};
  return std::find(kCuts.begin(), kCuts.end(), layer.kind()) != kCuts.end();
}

PartRow row_of(const Config& config, const Part& part, const MeshSeat& seat, std::int64_t micro) {
  std::vector<std::string> names;
  for (const Node& node : part.graph.nodes())
    if (!is_cut(*node.layer)) names.push_back(node.name);
  const Footprint memory = footprint_of(config, part, seat, micro);
  return {.layers = names.size() == 1 ? names.front() : names.front() + " to " + names.back(),
          .parameters = part.graph.parameters().weight_elems(),
          .memory = (memory.estimated ? "about " : "") + bytes_text(memory.total())};
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
    for (int shard = 0; shard < mesh.tensor(); ++shard) {
      const MeshSeat seat{.replica = 0, .stage = stage, .shard = shard};
      const Part part = part_of(graph, config.parallel, seat, costs);
      rows.push_back(row_of(config, part, seat, micro));
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
               count_text(row.parameters), row.memory});
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
