// SPDX-License-Identifier: Apache-2.0
#include "parallel/activation_exchange.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace echelon::inline parallel {
namespace {

// The coordinates of the sender or the receiver of a message of this rank's shard.
MeshCoord end_of(const Cut& cut, MeshCoord coord, bool end) {
  coord.stage = end ? cut.to : cut.from;
  if (cut.kind == CutKind::halo) coord.spatial_shard = end ? cut.to_spatial_shard : cut.from_spatial_shard;
  return coord;
}

bool sums(const Cut& cut) { return cut.kind == CutKind::sum || cut.kind == CutKind::row_sum || is_row_sums(cut.kind); }

DType travels_as(const Cut& cut, DType dtype) {
  if (is_row_sums(cut.kind)) return DType::f64;
  return cut.wide || sums(cut) ? wide_of(dtype) : dtype;
}

bool of_spatial_shards(const Cut& cut) {
  return cut.kind == CutKind::rows || cut.kind == CutKind::row_sum || is_row_sums(cut.kind);
}

// The axis of the value that a gather divides: features of (T, F) and (F), channels or rows of (C, H, W).
int axis_of(const Cut& cut) { return cut.kind == CutKind::rows || cut.shape.rank() == 2 ? 1 : 0; }

GatherForm form_of(const Cut& cut, std::int64_t batch) {
  GatherForm form{.outer = batch, .units = cut.counts};
  for (int axis = 0; axis < cut.shape.rank(); ++axis) {
    if (axis < axis_of(cut)) form.outer *= cut.shape[axis];
    if (axis > axis_of(cut)) form.inner *= cut.shape[axis];
  }
  return form;
}

// Bytes that one rank contributes to a collective.
std::size_t slot_bytes(const Cut& cut, std::int64_t batch, DType dtype) {
  const std::size_t elem = size_of(travels_as(cut, dtype));
  const std::int64_t elems = cut.shape.elems();
  if (cut.kind == CutKind::statistics) return static_cast<std::size_t>(elems) * elem;
  if (sums(cut)) return static_cast<std::size_t>(elems * batch) * elem;
  const std::int64_t most = *std::max_element(cut.counts.begin(), cut.counts.end());
  const std::int64_t all = std::accumulate(cut.counts.begin(), cut.counts.end(), std::int64_t{0});
  return static_cast<std::size_t>(elems / all * most * batch) * elem;
}

// One direction of a message.
struct P2pPlan {
  int cut = 0;
  bool backward = false;
  MeshCoord from, to;
  std::size_t buffer_bytes = 0;
};

// The links of all cuts that concern the ranks of this stage, in the same order on all of them; messages between
// stages, which all stages list, come first.
std::vector<P2pPlan> links_of(const std::vector<Cut>& cuts, const MeshCoord& coord, std::int64_t batch, DType dtype) {
  std::vector<P2pPlan> links;
  for (std::size_t c = 0; c < cuts.size(); ++c)
    for (const bool backward : {false, true})
      if (is_message(cuts[c].kind) && (!backward || cuts[c].learns))
        links.push_back({.cut = static_cast<int>(c),
                         .backward = backward,
                         .from = end_of(cuts[c], coord, backward),
                         .to = end_of(cuts[c], coord, !backward),
                         .buffer_bytes = static_cast<std::size_t>(cuts[c].shape.elems() * batch) * size_of(dtype)});
  return links;
}

std::size_t outgoing_bytes(const std::vector<P2pPlan>& links, const MeshCoord& coord) {
  std::size_t bytes = 0;
  for (const P2pPlan& link : links) bytes += link.from == coord ? shared_p2p_link_bytes(link.buffer_bytes) : 0;
  return bytes;
}

}  // namespace

ActivationExchange::ActivationExchange(Device& device, const GroupEngines& engines, const Mesh& mesh,
                                       const MeshCoord& coord, std::vector<Cut> cuts, DType dtype, int first_channel,
                                       std::int64_t most_samples)
    : cuts_(std::move(cuts)), most_samples_(most_samples), links_(2 * cuts_.size()), collectives_(cuts_.size()) {
  if (!mesh.splits()) return;
  make_links(device, engines.group, mesh, coord, dtype, first_channel);
  make_collectives(device, engines.shards, coord, false, dtype, first_channel);
  make_collectives(device, engines.spatial_shards, coord, true, dtype, first_channel);
}

// Pending messages end with the engine.
ActivationExchange::~ActivationExchange() = default;

// A rank's part of the shared memory contains the links that it sends on, in their order.
void ActivationExchange::make_links(Device& device, Engine& group, const Mesh& mesh, const MeshCoord& coord,
                                    DType dtype, int first_channel) {
  const std::vector<P2pPlan> plans = links_of(cuts_, coord, most_samples_, dtype);
  const std::shared_ptr<SharedBlock> block = group.share(outgoing_bytes(plans, coord));
  for (const P2pPlan& plan : plans) {
    if (plan.from != coord && plan.to != coord) continue;
    const std::size_t number = 2 * static_cast<std::size_t>(plan.cut) + (plan.backward ? 1 : 0);
    const P2pEnds ends{.group = group,
                       .peer = mesh.index_in_group(plan.from == coord ? plan.to : plan.from),
                       .sends = plan.from == coord,
                       .channel = first_channel + static_cast<int>(number)};
    if (!block) {
      links_[number] = make_message_p2p_link(device, ends, dtype, sent_);
      continue;
    }
    std::size_t begin = 0;
    for (const P2pPlan* before = plans.data(); before != &plan; ++before)
      begin += before->from == plan.from ? shared_p2p_link_bytes(before->buffer_bytes) : 0;
    links_[number] = make_shared_p2p_link(device, ends, block, block->of(mesh.index_in_group(plan.from)) + begin,
                                          plan.buffer_bytes, sent_);
  }
}

// The collectives of the shards or of the spatial shards of this stage.
void ActivationExchange::make_collectives(Device& device, Engine& ranks, const MeshCoord& coord, bool spatial_shards,
                                          DType dtype, int first_channel) {
  std::vector<std::size_t> own;
  std::size_t most = 0;
  for (std::size_t c = 0; c < cuts_.size(); ++c)
    if (!is_message(cuts_[c].kind) && cuts_[c].from == coord.stage && of_spatial_shards(cuts_[c]) == spatial_shards) {
      own.push_back(c);
      most = std::max(most, slot_bytes(cuts_[c], most_samples_, dtype));
    }
  if (own.empty()) return;
  const auto channel = [&](std::size_t c) { return first_channel + static_cast<int>(c); };
  const std::shared_ptr<SharedBlock> block = ranks.share(shared_collective_bytes(most));
  const std::shared_ptr<ReplicaCollective> together =
      block ? make_shared_collective(device, ranks, channel(own.front()), block, most, sent_) : nullptr;
  for (const std::size_t c : own)
    collectives_[c] = block ? together : make_message_collective(device, ranks, channel(c), sent_);
}

void ActivationExchange::begin(int micro_batches, std::int64_t batch, bool training) {
  ECHELON_CHECK_LE(batch, most_samples_);
  batch_ = batch;
  for (std::size_t i = 0; i < links_.size(); ++i)
    if (links_[i] && (i % 2 == 0 || training)) links_[i]->begin(micro_batches, cuts_[i / 2].shape.elems() * batch);
}

void ActivationExchange::carry(const Transfer& transfer) {
  const auto c = static_cast<std::size_t>(transfer.cut);
  const Cut& cut = cuts_[c];
  if (!is_message(cut.kind)) {
    if (sums(cut)) return collectives_[c]->sum(transfer.from, transfer.to);
    return collectives_[c]->gather(form_of(cut, batch_), transfer.from, transfer.to);
  }
  P2pLink& link = *links_[2 * c + (transfer.backward ? 1 : 0)];
  if (transfer.from.data == nullptr) return link.receive(transfer.to);
  if (cut.kind == CutKind::halo) halo_bytes_ += transfer.from.bytes();
  link.send(transfer.from);
}

void ActivationExchange::finish() {
  for (const auto& link : links_)
    if (link) link->finish();
}

std::size_t transfer_buffer_bytes(const std::vector<Cut>& cuts, const MeshCoord& coord, std::int64_t batch,
                                  DType dtype) {
  std::size_t bytes = 0;
  for (const P2pPlan& link : links_of(cuts, coord, batch, dtype))
    if (link.from == coord || link.to == coord) bytes += kTransferBuffers * link.buffer_bytes;
  for (const Cut& cut : cuts)
    if (cut.from == coord.stage && (cut.kind == CutKind::gather || cut.kind == CutKind::rows))
      bytes += static_cast<std::size_t>(cut.shape.elems() * batch) * size_of(travels_as(cut, dtype));
  return bytes;
}

}  // namespace echelon::inline parallel
