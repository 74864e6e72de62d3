// SPDX-License-Identifier: Apache-2.0
#include "cli/mesh_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "base/text.hpp"
#include "device/device.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/split.hpp"
#include "parallel/stages.hpp"
#include "parallel/time_chunk_pipeline.hpp"

namespace echelon::cli {
namespace {

struct PartRow {
  std::string layers;
  std::int64_t parameters = 0;
  std::string memory;
};

PartRow row_of(const Graph& whole, const Part& part, const MeshCoord& coord, const Footprint& memory) {
  return {.layers = stage_text(whole, part.stages, coord.stage),
          .parameters = part.graph.parameters().weight_elems(),
          .memory = (memory.estimated ? "about " : "") + bytes_text(memory.total())};
}

// Bytes per sample inside a replica, forward and backward.
struct Traffic {
  std::int64_t tensors = 0;  // between stages
  double sent = 0, halos = 0, summed = 0, gathered = 0;
};

// Adds the bytes that a rank sends, and the size that the first rank of a collective holds at its end.
void add_traffic(const std::vector<Cut>& cuts, const MeshCoord& coord, DType dtype, Traffic& all) {
  for (const Cut& cut : cuts) {
    if (cut.from != coord.stage) continue;
    const double bytes = static_cast<double>(cut.shape.elems()) * static_cast<double>(size_of(dtype));
    const int ways = cut.learns ? 2 : 1;
    if (cut.kind == CutKind::message && coord.shard == 0) all.sent += bytes * ways;
    if (cut.kind == CutKind::message && coord.shard == 0 && coord.spatial_shard == 0) ++all.tensors;
    if (cut.kind == CutKind::halo && cut.from_spatial_shard == coord.spatial_shard) all.halos += bytes * ways;
    if ((cut.kind == CutKind::sum || cut.kind == CutKind::gather) && coord.shard == 0)
      all.summed += bytes * static_cast<double>(cut.times);
    const bool of_rows = cut.kind == CutKind::rows || cut.kind == CutKind::row_sum;
    if (of_rows && coord.spatial_shard == 0 && coord.shard == 0) all.gathered += bytes;
  }
}

// The devices that the ranks compute on; GPUs are assigned by the rank's position on its host.
class Devices {
 public:
  explicit Devices(std::string kind) : kind_(std::move(kind)) {
    if (kind_ == "auto") kind_ = means_gpu(kind_) ? "cuda" : "onednn";
  }
  std::string of_next(int host) { return kind_ == "cuda" ? fmt::format("cuda {}", ranks_[host]++) : kind_; }

 private:
  std::string kind_;
  std::map<int, int> ranks_;  // ranks so far, by host
};

}  // namespace

MeshTable mesh_table(const Config& config, const RunPlan& plan, const Mesh& mesh, const std::vector<int>& hosts) {
  MeshTable out;
  std::vector<PartRow> rows;  // by position in the group
  Traffic all;
  std::string shards;  // by stage
  for (int place = 0; place < mesh.group_size(); ++place) {
    const MeshCoord coord = mesh.coord(mesh.rank_of(0, place));
    const Part part = plan.part_at(config.parallel, coord);
    const Footprint& memory = out.memory.emplace_back(plan.memory_of(config, part, coord));
    rows.push_back(row_of(plan.graph, part, coord, memory));
    add_traffic(part.cuts, coord, config.device.dtype, all);
    if (mesh.tensor() > 1 && coord.shard == 0 && coord.spatial_shard == 0)
      shards += fmt::format("tensor {}{}: {}\n", mesh.tensor(),
                            mesh.pipeline() > 1 ? fmt::format(" of stage {}", coord.stage) : "", part.shards);
  }
  Devices devices(config.device.kind);
  Table table(
      {"rank", "host", "device", "replica", "stage", "shard", "spatial shard", "layers", "parameters", "memory"});
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const MeshCoord coord = mesh.coord(rank);
    const PartRow& row = rows[static_cast<std::size_t>(mesh.index_in_group(coord))];
    const int host = hosts[static_cast<std::size_t>(rank)];
    table.row({std::to_string(rank), std::to_string(host), devices.of_next(host), std::to_string(coord.replica),
               std::to_string(coord.stage), std::to_string(coord.shard), std::to_string(coord.spatial_shard),
               row.layers, count_text(row.parameters), row.memory});
  }
  std::string& text = out.text = table.text();
  const int micro_batches = static_cast<int>(config.batch.accumulation);
  const int chunks = static_cast<int>(config.parallel.time_chunks);
  if (mesh.pipeline() > 1)
    text +=
        fmt::format("{} between stages, {} a sample, forward and backward; {} over {}{}: bubble at least {:.1f} %{}\n",
                    counted(all.tensors, "tensor"), bytes_text(all.sent), config.parallel.schedule,
                    counted(micro_batches, "micro-batch"), chunks > 1 ? fmt::format(" of {} chunks", chunks) : "",
                    100 * bubble_share(mesh.pipeline(), micro_batches, chunks),
                    micro_batches * chunks == 1 ? ", and one micro-batch gains nothing" : "");
  if (const std::vector<std::string> uncut = uncut_layers(plan.graph); chunks > 1 && !uncut.empty())
    text += fmt::format("{} {} all time steps at once: no overlap across {}\n", fmt::join(uncut, ", "),
                        uncut.size() == 1 ? "processes" : "process", uncut.size() == 1 ? "it" : "them");
  if (mesh.tensor() > 1)
    text +=
        shards + fmt::format("tensor shards sum or gather {} a sample, forward and backward\n", bytes_text(all.summed));
  if (mesh.space() > 1)
    text += fmt::format("spatial shards send {} of halos a sample, forward and backward, and gather or sum {}\n",
                        bytes_text(all.halos), bytes_text(all.gathered));
  return out;
}

}  // namespace echelon::cli
