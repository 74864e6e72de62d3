#include "parallel/courier.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/message.hpp"

namespace echelon {
namespace {

DType travels_as(const Cut& cut, DType dtype) {
  if (cut.kind == CutKind::statistics) return DType::f64;
  return cut.wide || cut.kind == CutKind::sum ? wide_of(dtype) : dtype;
}

constexpr std::size_t kBoxes = 2;  // one is filled or emptied while the other travels

// Where a message of this rank's shard begins, or ends.
MeshSeat end_of(const Cut& cut, MeshSeat seat, bool end) {
  seat.stage = end ? cut.to : cut.from;
  if (cut.kind == CutKind::halo) seat.band = end ? cut.to_band : cut.from_band;
  return seat;
}

// Where its units lie among the axes of the value: sequences (T, F) and images (C, H, W).
int axis_of(const Cut& cut) { return cut.kind == CutKind::rows || cut.shape.rank() == 2 ? 1 : 0; }

}  // namespace

// One direction of one cut, seen from this rank: an outbox or an inbox.
struct Courier::Way {
  bool sends = false, halo = false;
  int peer = 0;  // in the model group
  int channel = 0;
  std::int64_t batch = 0;  // that the plan is for
  std::shared_ptr<const Plan> plan;
  struct Box {
    Memory memory;
    Ticket ticket;
  };
  std::array<Box, kBoxes> boxes;
  std::size_t next = 0;  // box to use
  int to_post = 0;       // receives that are not posted yet
};

// What the shards or the bands of a stage do together at one cut.
struct Courier::Meeting {
  Engine* engine = nullptr;
  int channel = 0;
  std::int64_t batch = 0;  // that what follows is for
  std::shared_ptr<const Plan> plan;
  Memory box;                        // sums where the device's memory is out of reach; gathers: blocks of all shards
  Memory whole;                      // gathers where it is out of reach
  std::vector<std::int64_t> begins;  // gathers: first element of each rank's block in the box; and their end
};

Courier::Courier(Device& device, const GroupEngines& engines, const Mesh& mesh, const MeshSeat& seat,
                 std::vector<Cut> cuts, DType dtype, int first_channel)
    : device_(device), engines_(engines), cuts_(std::move(cuts)), dtype_(dtype) {
  ways_.resize(2 * cuts_.size());
  meetings_.resize(cuts_.size());
  for (std::size_t c = 0; c < cuts_.size(); ++c) {
    const Cut& cut = cuts_[c];
    if (!is_message(cut.kind)) {
      if (cut.from != seat.stage) continue;
      const bool bands = cut.kind == CutKind::rows || cut.kind == CutKind::statistics;
      meetings_[c] = std::make_unique<Meeting>();
      meetings_[c]->engine = bands ? &engines_.bands : &engines_.shards;
      meetings_[c]->channel = first_channel + static_cast<int>(c);
      continue;
    }
    for (const bool backward : {false, true}) {
      MeshSeat from = end_of(cut, seat, backward), to = end_of(cut, seat, !backward);
      if ((backward && !cut.learns) || (seat != from && seat != to)) continue;
      auto way = std::make_unique<Way>();
      way->sends = seat == from;
      way->halo = cut.kind == CutKind::halo;
      way->peer = mesh.index_in_group(way->sends ? to : from);
      way->channel = first_channel + static_cast<int>(2 * c) + (backward ? 1 : 0);
      ways_[2 * c + (backward ? 1 : 0)] = std::move(way);
    }
  }
}

// What still travels ends with the engine.
Courier::~Courier() = default;

void Courier::begin(int micro_batches, std::int64_t batch, bool training) {
  for (std::size_t c = 0; c < cuts_.size(); ++c)
    if (meetings_[c] && meetings_[c]->batch != batch) prepare(*meetings_[c], cuts_[c], batch);
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    if (!ways_[i] || (i % 2 == 1 && !training)) continue;
    Way& way = *ways_[i];
    ECHELON_CHECK_EQ(way.to_post, 0, "passes of the step before are missing");
    if (way.batch != batch) {
      const std::int64_t elems = cuts_[i / 2].shape.elems() * batch;
      way.plan = way.sends ? make_send_to(way.peer, elems) : make_receive_from(way.peer, elems);
      for (Way::Box& box : way.boxes) {
        box.ticket.wait();
        box.memory = device_.allocate_host(static_cast<std::size_t>(elems) * size_of(dtype_));
      }
      way.batch = batch;
    }
    if (way.sends) continue;
    way.to_post = micro_batches;
    for (std::size_t b = 0; b < kBoxes && way.to_post > 0; ++b) post(way);
  }
}

// Into the box that is used next after those posted already.
void Courier::post(Way& way) {
  Way::Box& box = way.boxes[way.next];
  way.next = (way.next + 1) % kBoxes;
  --way.to_post;
  box.ticket = engines_.group.submit(
      {.plan = way.plan, .data = box.memory.data(), .dtype = dtype_, .channel = way.channel, .after = nullptr});
}

void Courier::prepare(Meeting& meeting, const Cut& cut, std::int64_t batch) {
  const bool statistics = cut.kind == CutKind::statistics;
  const std::int64_t elems = cut.shape.elems() * (statistics ? 1 : batch);
  const DType dtype = travels_as(cut, dtype_);
  const auto bytes = static_cast<std::size_t>(elems) * size_of(dtype);
  const int rank = meeting.engine->rank(), ranks = meeting.engine->size();
  meeting.batch = batch;
  if (cut.kind == CutKind::sum || statistics) {
    meeting.plan = make_allreduce("halving_doubling", {.rank = rank, .ranks = ranks, .elems = elems});
    if (!device_.on_host()) meeting.box = device_.allocate_host(bytes);
    return;
  }
  const std::int64_t units = std::accumulate(cut.counts.begin(), cut.counts.end(), std::int64_t{0});
  std::vector<std::int64_t> blocks;
  meeting.begins = {0};
  for (const std::int64_t count : cut.counts) {
    blocks.push_back(elems / units * count);
    meeting.begins.push_back(meeting.begins.back() + blocks.back());
  }
  meeting.plan = make_allgather_blocks(rank, blocks);
  meeting.box = device_.allocate_host(bytes);
  if (!device_.on_host()) meeting.whole = device_.allocate_host(bytes);
}

void Courier::meet(Meeting& meeting, void* data, DType dtype) {
  const ScopedTimer timer(waited_s_);
  const Ticket ticket = meeting.engine->submit(
      {.plan = meeting.plan, .data = data, .dtype = dtype, .channel = meeting.channel, .after = nullptr});
  ticket.wait();
  sent_ += ticket.wire();
}

void Courier::sum(Meeting& meeting, const Transfer& transfer) {
  if (device_.on_host()) {
    std::memcpy(transfer.to.data, transfer.from.data, transfer.to.bytes());
    return meet(meeting, transfer.to.data, transfer.to.dtype);
  }
  device_.to_host(meeting.box.data(), transfer.from.data, transfer.from.bytes());
  meet(meeting, meeting.box.data(), transfer.to.dtype);
  device_.to_device(transfer.to.data, meeting.box.data(), transfer.to.bytes());
}

// Blocks of ranks, (outer, units of the rank, inner), become (outer, units, inner): outer are samples, with places of
// sequences or channels of images, inner what lies behind a unit.
void Courier::gather(Meeting& meeting, const Cut& cut, const Transfer& transfer) {
  const std::size_t elem = size_of(transfer.to.dtype);
  const auto at = [&](std::int64_t elems) {
    return static_cast<std::byte*>(meeting.box.data()) + static_cast<std::size_t>(elems) * elem;
  };
  device_.to_host(at(meeting.begins[static_cast<std::size_t>(meeting.engine->rank())]), transfer.from.data,
                  transfer.from.bytes());
  meet(meeting, meeting.box.data(), transfer.to.dtype);
  auto* whole = static_cast<std::byte*>(device_.on_host() ? transfer.to.data : meeting.whole.data());
  std::int64_t outer = meeting.batch, inner = 1;
  for (int axis = 0; axis < cut.shape.rank(); ++axis) {
    if (axis < axis_of(cut)) outer *= cut.shape[axis];
    if (axis > axis_of(cut)) inner *= cut.shape[axis];
  }
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::size_t rank = 0; rank < cut.counts.size(); ++rank) {
      const std::int64_t block = cut.counts[rank] * inner;
      const auto bytes = static_cast<std::size_t>(block) * elem;
      std::memcpy(whole, at(meeting.begins[rank] + o * block), bytes);
      whole += bytes;
    }
  if (!device_.on_host()) device_.to_device(transfer.to.data, meeting.whole.data(), transfer.to.bytes());
}

void Courier::carry(const Transfer& transfer) {
  const Cut& cut = cuts_[static_cast<std::size_t>(transfer.cut)];
  if (!is_message(cut.kind)) {
    Meeting& meeting = *meetings_[static_cast<std::size_t>(transfer.cut)];
    const bool sums = cut.kind == CutKind::sum || cut.kind == CutKind::statistics;
    return sums ? sum(meeting, transfer) : gather(meeting, cut, transfer);
  }
  const bool sends = transfer.from.data != nullptr;
  Way& on = way(transfer.cut, transfer.backward);
  ECHELON_CHECK(on.sends == sends, "cut {} sends where it should receive", transfer.cut);
  if (sends)
    send(on, transfer.from);
  else
    receive(on, transfer.to);
}

void Courier::send(Way& way, const Tensor& tensor) {
  Way::Box& box = way.boxes[way.next];
  way.next = (way.next + 1) % kBoxes;
  {
    const ScopedTimer timer(waited_s_);
    box.ticket.wait();
  }
  ++sent_.messages_sent;
  sent_.bytes_sent += tensor.bytes();
  if (way.halo) halo_bytes_ += tensor.bytes();
  device_.to_host(box.memory.data(), tensor.data, tensor.bytes());
  box.ticket = engines_.group.submit(
      {.plan = way.plan, .data = box.memory.data(), .dtype = dtype_, .channel = way.channel, .after = nullptr});
}

// Boxes are taken in the order in which they were posted.
void Courier::receive(Way& way, const Tensor& tensor) {
  // With fewer posts left than boxes, `next` has run ahead by as many as are out.
  Way::Box* oldest = nullptr;
  for (std::size_t b = 0; b < kBoxes && !oldest; ++b) {
    Way::Box& box = way.boxes[(way.next + b) % kBoxes];
    if (box.ticket.valid()) oldest = &box;
  }
  ECHELON_CHECK(oldest, "nothing was to come");
  {
    const ScopedTimer timer(waited_s_);
    oldest->ticket.wait();
  }
  device_.to_device(tensor.data, oldest->memory.data(), tensor.bytes());
  oldest->ticket = {};
  if (way.to_post > 0) post(way);
}

void Courier::finish() {
  const ScopedTimer timer(waited_s_);
  for (const auto& way : ways_)
    for (std::size_t b = 0; way && way->sends && b < kBoxes; ++b) way->boxes[b].ticket.wait();
}

double Courier::take_waited_s() { return std::exchange(waited_s_, 0); }

std::size_t courier_bytes(const std::vector<Cut>& cuts, const MeshSeat& seat, std::int64_t batch, DType dtype) {
  std::size_t bytes = 0;
  for (const Cut& cut : cuts) {
    if (seat != end_of(cut, seat, false) && seat != end_of(cut, seat, true)) continue;
    const std::size_t one = static_cast<std::size_t>(cut.shape.elems() * batch) * size_of(travels_as(cut, dtype));
    if (is_message(cut.kind)) bytes += one * kBoxes * (cut.learns ? 2 : 1);
    if (cut.kind == CutKind::gather || cut.kind == CutKind::rows) bytes += one;
  }
  return bytes;
}

}  // namespace echelon
