// SPDX-License-Identifier: Apache-2.0
#include "exchange/allreduce/exact_part.hpp"

#include <algorithm>
#include <cstring>

namespace echelon::inline exchange {

ExactPart::ExactPart(const StrategyContext& context, std::string_view algorithm, AllreduceRequest request, int channel,
                     bool needed)
    : arenas_(context.arenas), engine_(context.engine), channel_(channel) {
  if (!needed) return;
  for (const Parameter& parameter : arenas_.parameters().all()) {
    if (parameter.kind != ParameterKind::statistic) continue;
    pieces_.push_back({.range = {parameter.begin, parameter.end()}, .at = elems_});
    elems_ += parameter.elems();
  }
  if (elems_ == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(elems_) * size_of(arenas_.dtype());
  values_ = arenas_.device().allocate_host(bytes);
  request.elems = elems_;
  plan_ = make_allreduce(algorithm, request);
  formula_bytes_ = static_cast<double>(price_allreduce(algorithm, request).payload_elems) *
                   static_cast<double>(size_of(arenas_.dtype()));
}

std::byte* ExactPart::values_at(const Piece& piece) const {
  return values_.bytes_at(static_cast<std::size_t>(piece.at) * size_of(arenas_.dtype()));
}

void ExactPart::take(ArenaRange bucket) {
  Device& device = arenas_.device();
  const std::int64_t before = taken_;
  for (const Piece& piece : pieces_) {
    if (piece.range.begin < bucket.begin || piece.range.end > bucket.end) continue;
    const std::size_t bytes = static_cast<std::size_t>(piece.range.elems()) * size_of(arenas_.dtype());
    void* gradients = arenas_.gradients_at(piece.range.begin);
    device.to_host_async(values_at(piece), gradients, bytes);
    device.zero(gradients, bytes);
    taken_ += piece.range.elems();
  }
  if (taken_ == before || taken_ < elems_) return;
  taken_ = 0;
  Job job;
  job.plan = plan_;
  job.data = values_.data();
  job.dtype = arenas_.dtype();
  job.channel = channel_;
  job.after = device.record();
  ticket_ = engine_.submit(std::move(job));
  counted_ = false;
}

WireCounters ExactPart::put(ArenaRange bucket, void* summed) {
  for (const Piece& piece : pieces_) {
    if (piece.range.begin < bucket.begin || piece.range.end > bucket.end) continue;
    ticket_.wait();
    const std::size_t elem = size_of(arenas_.dtype()), bytes = static_cast<std::size_t>(piece.range.elems()) * elem;
    if (!summed)
      arenas_.device().to_device_async(arenas_.gradients_at(piece.range.begin), values_at(piece), bytes);
    else
      std::memcpy(static_cast<std::byte*>(summed) + static_cast<std::size_t>(piece.range.begin - bucket.begin) * elem,
                  values_at(piece), bytes);
  }
  if (counted_ || !ticket_.done()) return {};
  counted_ = true;
  return ticket_.wire();
}

}  // namespace echelon::inline exchange
