// SPDX-License-Identifier: Apache-2.0
#include "exchange/server/codec.hpp"

#include <algorithm>
#include <utility>

#include "comm/collective/server.hpp"
#include "device/vector.hpp"
#include "exchange/residual_state.hpp"

namespace echelon::inline exchange {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
std::size_t bytes_of(ArenaRange range) { return index(range.elems()) * sizeof(float); }

std::vector<ArenaRange> ranges_of(const std::vector<PartitionedBucket>& buckets) {
  std::vector<ArenaRange> ranges;
  for (const PartitionedBucket& bucket : buckets) ranges.push_back(bucket.range);
  return ranges;
}

}  // namespace

ServerCodec::ServerCodec(const ExchangeConfig& config, const StrategyContext& context,
                         const std::vector<PartitionedBucket>& buckets)
    : context_(context),
      workers_(server_workers(buckets.front().request)),
      feedback_(config, context.arenas.parameters(), ranges_of(buckets), context.seed) {
  if (!on()) return;
  if (lossy())
    for (std::vector<float>* arena : {&master_, &changes_, &working_}) arena->resize(index(context.arenas.elems()));
  for (const auto& [bucket, request] : buckets) {
    const Parts parts = server_parts(request);
    const ElemRange own = parts[index(request.rank)];
    own_.push_back({bucket.begin + own.begin, bucket.begin + own.end});
    forms_.push_back({make_form(config, bucket, parts, true), make_form(config, bucket, parts, false)});
    formula_bytes_ += coded_server_bytes(*forms_.back().push, request);
  }
  formula_bytes_ = feedback_.formula_bytes(formula_bytes_);
}

std::unique_ptr<ServerForm> ServerCodec::make_form(const ExchangeConfig& config, ArenaRange bucket, const Parts& parts,
                                                   bool push) {
  const std::span<float> residual = push ? feedback_.residual().on_host(bucket) : std::span<float>();
  return ServerForm::make(config, context_.arenas.parameters(), context_.arenas.dtype(), bucket, parts, residual,
                          !push);
}

std::vector<ElemRange> ServerCodec::statistics_of(ArenaRange bucket) const {
  return lossy() ? statistics_in(context_.arenas.parameters(), bucket) : std::vector<ElemRange>();
}

void ServerCodec::read(float* to, ArenaRange range) const {
  if (range.elems() > 0) context_.arenas.device().to_host(to, context_.arenas.weights_at(range.begin), bytes_of(range));
}

void ServerCodec::write(const float* from, ArenaRange range) const {
  if (range.elems() > 0)
    context_.arenas.device().to_device(context_.arenas.weights_at(range.begin), from, bytes_of(range));
}

void ServerCodec::begin_master() {
  if (std::exchange(master_begun_, true)) return;
  read(master_.data(), {0, context_.arenas.elems()});
}

template <class Do>
void ServerCodec::each_statistic(std::size_t b, ArenaRange range, const Do& act) const {
  const std::int64_t begin = feedback_.bucket(b).begin;
  for (const ElemRange& all : statistics_of(feedback_.bucket(b)))
    for (std::int64_t i = std::max(range.begin, begin + all.begin); i < std::min(range.end, begin + all.end); ++i)
      act(i);
}

void ServerCodec::before_push(std::size_t b, std::int64_t step) {
  if (!on()) return;
  feedback_.begin_step(b, step);
  if (feedback_.take_loaded(b)) {
    const ArenaRange unsent = ranks() == 1 ? feedback_.bucket(b) : own_[b];
    feedback_.residual().release(context_.arenas.device(), context_.arenas.gradients_at(unsent.begin), unsent);
  }
  if (ranks() == 1) return;
  if (!codes(b)) {
    master_begun_ = false;  // uncoded steps leave exact weights, from which the master begins anew
    return;
  }
  const std::uint64_t key = feedback_.key(b, step, context_.engine.rank());
  if (feedback_.drops()) feedback_.residual().clear(feedback_.bucket(b));
  forms_[b].push->begin_step(key);
  forms_[b].pull->begin_step(key);
}

void ServerCodec::before_update(std::size_t b) {
  if (!lossy()) return;
  if (ranks() == 1) {
    if (pending_masters_ > 0)
      --pending_masters_, write(master_.data() + feedback_.bucket(b).begin, feedback_.bucket(b));
    return;
  }
  if (!sends_changes(b)) return;
  begin_master();
  const ArenaRange own = own_[b];
  read(working_.data() + own.begin, own);
  write(master_.data() + own.begin, own);
}

void ServerCodec::after_update(std::size_t b) {
  if (!sends_changes(b)) return;
  const ArenaRange own = own_[b];
  read(master_.data() + own.begin, own);
  write(working_.data() + own.begin, own);
  for (std::int64_t i = own.begin; i < own.end; ++i) changes_[index(i)] = master_[index(i)] - working_[index(i)];
  each_statistic(b, own, [&](std::int64_t i) { changes_[index(i)] = master_[index(i)]; });
}

void ServerCodec::finish(std::size_t b) {
  if (!codes(b) || ranks() == 1) return;
  feedback_.tally().add(forms_[b].push->take_encoded());
  feedback_.tally().add(forms_[b].pull->take_encoded());
  if (lossy()) follow(b);
}

// Adds the decoded change to the working copy of the whole bucket; on a dedicated server, of its part only.
void ServerCodec::follow(std::size_t b) {
  const ArenaRange own = own_[b], range = works() ? feedback_.bucket(b) : own;
  float* working = working_.data() + range.begin;
  read(working, range);
  host_vector_ops().add(DType::f32, working, changes_.data() + range.begin, index(range.elems()));
  each_statistic(b, range, [&](std::int64_t i) { working[i - range.begin] = changes_[index(i)]; });
  write(working, range);
  double residual = feedback_.residual().squares(range);
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    const double left = static_cast<double>(master_[index(i)]) - static_cast<double>(working[i - range.begin]);
    residual += left * left;
  }
  feedback_.tally().set_residual(b, residual);
}

void ServerCodec::visit_state(StateVisitor& visitor) {
  if (!lossy()) return;
  feedback_.visit_state(visitor, {context_.engine.rank(), workers_});
  if (!visitor.loading()) {
    begin_master();
    if (ranks() == 1 && pending_masters_ == 0) read(master_.data(), {0, context_.arenas.elems()});
  }
  visit_whole(visitor, "master", context_.arenas.parameters(), master_.data());
  std::vector<Codec*> codecs;
  for (const Forms& forms : forms_)
    for (ServerForm* form : {forms.push.get(), forms.pull.get()})
      for (ServerForm::Part& part : form->parts()) codecs.push_back(part.codec.get());
  visit_taus(visitor, "codec_tau" + context_.part, codecs, {context_.engine.rank(), ranks()});
  if (!visitor.loading()) return;
  master_begun_ = true;
  if (ranks() == 1) pending_masters_ = feedback_.buckets().size();
}

}  // namespace echelon::inline exchange
