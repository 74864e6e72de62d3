// SPDX-License-Identifier: Apache-2.0
#include "model/replay.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace echelon::inline model {
namespace {

bool can_be_recorded(const LoweredOp& op) {
  return op.cut < 0 && op.spec.kind != OpKind::dropout && op.summed < 0 && op.op->replays();
}

}  // namespace

Replay::Replay(Device& device, const std::vector<LoweredOp>& ops, Run run)
    : device_(device), ops_(ops), run_(std::move(run)) {
  ECHELON_CHECK(device.records(), "device {} cannot record ops", device.name());
}

void Replay::run(int begin, int end, const PassScalars& scalars) {
  if (begin == end) return;
  auto [found, fresh] = ranges_.try_emplace({begin, end});
  if (fresh) found->second = pieces_of(begin, end);
  for (Piece& piece : found->second) run_piece(piece, scalars);
}

std::vector<Replay::Piece> Replay::pieces_of(int begin, int end) const {
  std::vector<Piece> pieces;
  for (int i = begin; i < end; ++i) {
    const LoweredOp& op = ops_[static_cast<std::size_t>(i)];
    const bool recorded = can_be_recorded(op);
    if (pieces.empty() || pieces.back().recorded != recorded)
      pieces.push_back({.begin = i, .end = i, .recorded = recorded});
    Piece& piece = pieces.back();
    piece.end = i + 1;
    piece.reads_loss_scale |= op.scale == ScaleSource::loss_scale;
    piece.reads_group_weight |= op.scale == ScaleSource::group_weight;
    piece.reads_samples |= op.count_per_sample != 0;
  }
  return pieces;
}

void Replay::run_piece(Piece& piece, const PassScalars& scalars) {
  if (!piece.recorded) return run_ops(piece, scalars);
  Take& take = take_for(piece, {.first = scalars.first,
                                .slot = scalars.slot,
                                .in_flight = scalars.in_flight,
                                .loss_scale = piece.reads_loss_scale ? scalars.loss_scale : 0,
                                .group_weight = piece.reads_group_weight ? scalars.group_weight : 0,
                                .samples = piece.reads_samples ? scalars.samples : 0});
  if (take.passes < kWarm) {
    ++take.passes;
    return run_ops(piece, scalars);
  }
  if (!take.recording) take.recording = device_.record_ops([&] { run_ops(piece, scalars); });
  take.recording->replay();
}

void Replay::run_ops(const Piece& piece, const PassScalars& scalars) {
  for (int i = piece.begin; i < piece.end; ++i) run_(i, scalars);
}

Replay::Take& Replay::take_for(Piece& piece, const RecordedScalars& recorded) {
  std::vector<Take>& takes = piece.takes;
  const auto found =
      std::find_if(takes.begin(), takes.end(), [&](const Take& take) { return take.recorded == recorded; });
  if (found != takes.end()) {
    std::rotate(found, found + 1, takes.end());
  } else {
    if (takes.size() == kMostTakes) takes.erase(takes.begin());
    takes.push_back({.recorded = recorded});
  }
  return takes.back();
}

}  // namespace echelon::inline model
