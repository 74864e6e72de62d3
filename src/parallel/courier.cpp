#include "parallel/courier.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace echelon {
namespace {

// Where a message of this rank's shard begins, or ends.
MeshSeat end_of(const Cut& cut, MeshSeat seat, bool end) {
  seat.stage = end ? cut.to : cut.from;
  if (cut.kind == CutKind::halo) seat.band = end ? cut.to_band : cut.from_band;
  return seat;
}

DType travels_as(const Cut& cut, DType dtype) {
  if (cut.kind == CutKind::statistics) return DType::f64;
  return cut.wide || cut.kind == CutKind::sum ? wide_of(dtype) : dtype;
}

bool of_bands(const Cut& cut) { return cut.kind == CutKind::rows || cut.kind == CutKind::statistics; }
bool sums(const Cut& cut) { return cut.kind == CutKind::sum || cut.kind == CutKind::statistics; }

// Where its units lie among the axes of the value: sequences (T, F) and images (C, H, W).
int axis_of(const Cut& cut) { return cut.kind == CutKind::rows || cut.shape.rank() == 2 ? 1 : 0; }

GatherForm form_of(const Cut& cut, std::int64_t batch) {
  GatherForm form{.outer = batch, .units = cut.counts};
  for (int axis = 0; axis < cut.shape.rank(); ++axis) {
    if (axis < axis_of(cut)) form.outer *= cut.shape[axis];
    if (axis > axis_of(cut)) form.inner *= cut.shape[axis];
  }
  return form;
}

// Of what one rank brings to a meeting.
std::size_t slot_bytes(const Cut& cut, std::int64_t batch, DType dtype) {
  const std::size_t elem = size_of(travels_as(cut, dtype));
  const std::int64_t elems = cut.shape.elems();
  if (cut.kind == CutKind::statistics) return static_cast<std::size_t>(elems) * elem;
  if (cut.kind == CutKind::sum) return static_cast<std::size_t>(elems * batch) * elem;
  const std::int64_t most = *std::max_element(cut.counts.begin(), cut.counts.end());
  const std::int64_t all = std::accumulate(cut.counts.begin(), cut.counts.end(), std::int64_t{0});
  return static_cast<std::size_t>(elems / all * most * batch) * elem;
}

// One direction of a message.
struct WayPlan {
  int cut = 0;
  bool backward = false;
  MeshSeat from, to;
  std::size_t box_bytes = 0;
};

// Of all cuts, as the ranks of this seat's stage know them, in one order; messages between stages, which all stages
// know, come first.
std::vector<WayPlan> ways_of(const std::vector<Cut>& cuts, const MeshSeat& seat, std::int64_t batch, DType dtype) {
  std::vector<WayPlan> ways;
  for (std::size_t c = 0; c < cuts.size(); ++c)
    for (const bool backward : {false, true})
      if (is_message(cuts[c].kind) && (!backward || cuts[c].learns))
        ways.push_back({.cut = static_cast<int>(c),
                        .backward = backward,
                        .from = end_of(cuts[c], seat, backward),
                        .to = end_of(cuts[c], seat, !backward),
                        .box_bytes = static_cast<std::size_t>(cuts[c].shape.elems() * batch) * size_of(dtype)});
  return ways;
}

std::size_t outgoing_bytes(const std::vector<WayPlan>& ways, const MeshSeat& seat) {
  std::size_t bytes = 0;
  for (const WayPlan& way : ways) bytes += way.from == seat ? shared_way_bytes(way.box_bytes) : 0;
  return bytes;
}

}  // namespace

Courier::Courier(Device& device, const GroupEngines& engines, const Mesh& mesh, const MeshSeat& seat,
                 std::vector<Cut> cuts, DType dtype, int first_channel, std::int64_t most_samples)
    : cuts_(std::move(cuts)), most_samples_(most_samples), ways_(2 * cuts_.size()), meetings_(cuts_.size()) {
  if (!mesh.splits()) return;
  make_ways(device, engines.group, mesh, seat, dtype, first_channel);
  make_meetings(device, engines.shards, seat, false, dtype, first_channel);
  make_meetings(device, engines.bands, seat, true, dtype, first_channel);
}

// What still travels ends with the engine.
Courier::~Courier() = default;

// A rank's part of the shared memory holds the ways that it sends on, in their order.
void Courier::make_ways(Device& device, Engine& group, const Mesh& mesh, const MeshSeat& seat, DType dtype,
                        int first_channel) {
  const std::vector<WayPlan> plans = ways_of(cuts_, seat, most_samples_, dtype);
  const std::shared_ptr<SharedBlock> block = group.share(outgoing_bytes(plans, seat));
  for (const WayPlan& plan : plans) {
    if (plan.from != seat && plan.to != seat) continue;
    const std::size_t number = 2 * static_cast<std::size_t>(plan.cut) + (plan.backward ? 1 : 0);
    const WayEnds ends{.group = group,
                       .peer = mesh.index_in_group(plan.from == seat ? plan.to : plan.from),
                       .sends = plan.from == seat,
                       .channel = first_channel + static_cast<int>(number)};
    if (!block) {
      ways_[number] = make_message_way(device, ends, dtype, tally_);
      continue;
    }
    std::size_t begin = 0;
    for (const WayPlan* before = plans.data(); before != &plan; ++before)
      begin += before->from == plan.from ? shared_way_bytes(before->box_bytes) : 0;
    ways_[number] =
        make_shared_way(device, ends, block, block->of(mesh.index_in_group(plan.from)) + begin, plan.box_bytes, tally_);
  }
}

// Of the shards or of the bands of this stage.
void Courier::make_meetings(Device& device, Engine& ranks, const MeshSeat& seat, bool bands, DType dtype,
                            int first_channel) {
  std::vector<std::size_t> own;
  std::size_t most = 0;
  for (std::size_t c = 0; c < cuts_.size(); ++c)
    if (!is_message(cuts_[c].kind) && cuts_[c].from == seat.stage && of_bands(cuts_[c]) == bands) {
      own.push_back(c);
      most = std::max(most, slot_bytes(cuts_[c], most_samples_, dtype));
    }
  if (own.empty()) return;
  const auto channel = [&](std::size_t c) { return first_channel + static_cast<int>(c); };
  const std::shared_ptr<SharedBlock> block = ranks.share(shared_meeting_bytes(most));
  const std::shared_ptr<Meeting> together =
      block ? make_shared_meeting(device, ranks, channel(own.front()), block, most, tally_) : nullptr;
  for (const std::size_t c : own)
    meetings_[c] = block ? together : make_message_meeting(device, ranks, channel(c), tally_);
}

void Courier::begin(int micro_batches, std::int64_t batch, bool training) {
  ECHELON_CHECK_LE(batch, most_samples_);
  batch_ = batch;
  for (std::size_t i = 0; i < ways_.size(); ++i)
    if (ways_[i] && (i % 2 == 0 || training)) ways_[i]->begin(micro_batches, cuts_[i / 2].shape.elems() * batch);
}

void Courier::carry(const Transfer& transfer) {
  const auto c = static_cast<std::size_t>(transfer.cut);
  const Cut& cut = cuts_[c];
  if (!is_message(cut.kind)) {
    if (sums(cut)) return meetings_[c]->sum(transfer.from, transfer.to);
    return meetings_[c]->gather(form_of(cut, batch_), transfer.from, transfer.to);
  }
  Way& way = *ways_[2 * c + (transfer.backward ? 1 : 0)];
  if (transfer.from.data == nullptr) return way.receive(transfer.to);
  if (cut.kind == CutKind::halo) halo_bytes_ += transfer.from.bytes();
  way.send(transfer.from);
}

void Courier::finish() {
  for (const auto& way : ways_)
    if (way) way->finish();
}

double Courier::take_waited_s() { return std::exchange(tally_.waited_s, 0); }

std::size_t courier_bytes(const std::vector<Cut>& cuts, const MeshSeat& seat, std::int64_t batch, DType dtype) {
  std::size_t bytes = 0;
  for (const WayPlan& way : ways_of(cuts, seat, batch, dtype))
    if (way.from == seat || way.to == seat) bytes += kBoxes * way.box_bytes;
  for (const Cut& cut : cuts)
    if (cut.from == seat.stage && (cut.kind == CutKind::gather || cut.kind == CutKind::rows))
      bytes += static_cast<std::size_t>(cut.shape.elems() * batch) * size_of(travels_as(cut, dtype));
  return bytes;
}

}  // namespace echelon
