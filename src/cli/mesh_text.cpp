#include "cli/mesh_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.hpp"
#include "model/build.hpp"
#include "parallel/footprint.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/split.hpp"
#include "parallel/stages.hpp"
#include "parallel/staircase.hpp"

namespace echelon::cli {
namespace {

struct PartRow {
  std::string layers;
  std::int64_t parameters = 0;
  std::string memory;
};

PartRow row_of(const Config& config, const Graph& whole, const Part& part, const MeshSeat& seat, std::int64_t micro) {
  const Footprint memory = footprint_of(config, part, seat, micro);
  return {.layers = stage_text(whole, part.stages, seat.stage),
          .parameters = part.graph.parameters().weight_elems(),
          .memory = (memory.estimated ? "about " : "") + bytes_text(memory.total())};
}

}  // namespace

std::string mesh_table(const Config& config, const Graph& graph, const Mesh& mesh, const std::vector<int>& hosts,
                       std::int64_t micro) {
  const std::vector<double> costs = node_flops(graph, config.device.dtype);
  const double elem = static_cast<double>(size_of(config.device.dtype));
  double sent = 0, summed = 0;  // bytes a sample
  std::int64_t messages = 0;    // tensors between stages
  std::vector<PartRow> rows;    // by part
  for (int stage = 0; stage < mesh.pipeline(); ++stage) {
    for (int shard = 0; shard < mesh.tensor(); ++shard) {
      const MeshSeat seat{.replica = 0, .stage = stage, .shard = shard};
      const Part part = part_of(graph, config.parallel, seat, costs);
      rows.push_back(row_of(config, graph, part, seat, micro));
      for (const Cut& cut : part.cuts) {
        const double bytes = static_cast<double>(cut.shape.elems()) * elem;
        if (cut.kind == CutKind::message)  // on every rank the same
          messages += stage + shard == 0 ? 1 : 0, sent += stage + shard == 0 ? bytes * (cut.learns ? 2 : 1) : 0;
        else
          summed += shard == 0 ? bytes : 0;
      }
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
  const int chunks = static_cast<int>(config.parallel.time_chunks);
  if (mesh.pipeline() > 1)
    text += fmt::format("{} between stages, {} a sample, forward and back; {} over {}{}: bubble at least {:.1f} %{}\n",
                        counted(messages, "tensor"), bytes_text(sent), config.parallel.schedule,
                        counted(micro_batches, "micro-batch"), chunks > 1 ? fmt::format(" of {} chunks", chunks) : "",
                        100 * bubble_share(mesh.pipeline(), micro_batches, chunks),
                        micro_batches * chunks == 1 ? ", and one micro-batch gains nothing" : "");
  if (const std::vector<std::string> uncut = uncut_layers(graph); chunks > 1 && !uncut.empty())
    text += fmt::format("{} {} all steps at once: nothing overlaps across {}\n", fmt::join(uncut, ", "),
                        uncut.size() == 1 ? "sees" : "see", uncut.size() == 1 ? "it" : "them");
  if (mesh.tensor() > 1)
    text += fmt::format("shards sum or gather {} a sample, forward and back\n", bytes_text(summed));
  return text;
}

}  // namespace echelon::cli
