// SPDX-License-Identifier: Apache-2.0
#include "exchange/gossip/neighbour_sums.hpp"

#include <algorithm>
#include <utility>

#include "base/spans.hpp"
#include "comm/collective/neighbours.hpp"

namespace echelon::inline exchange {

NeighbourSums::NeighbourSums(const StrategyContext& context, const std::vector<ArenaRange>& buckets, void* arena,
                             const GossipGraph& graph)
    : context_(context),
      graph_(graph),
      staging_(context.arenas.device(), arena, context.arenas.elems(), context.arenas.dtype()) {
  const std::int64_t most = neighbour_message_elems(static_cast<double>(size_of(context.arenas.dtype())));
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const auto [first, last] = buckets[bucket];
    for (std::int64_t begin = first; begin < last; begin += most)
      pieces_.push_back({{begin, std::min(begin + most, last)}, static_cast<std::int64_t>(bucket)});
  }
  for (std::size_t j = 0; j < jobs(); ++j) {
    const std::size_t bytes = j < pieces_.size() ? size_of(context_.arenas.dtype()) : sizeof(double);
    formula_bytes_ += static_cast<double>(price_neighbour_sum(graph_.links(), elems_of(j), elems_of(j)).payload_elems) *
                      static_cast<double>(bytes);
  }
}

NeighbourSums::Plans NeighbourSums::make_plans(std::int64_t round) const {
  Neighbours neighbours = graph_.at(context_.engine.rank(), round);
  NeighbourRequest request{.rank = context_.engine.rank(),
                           .ranks = context_.engine.size(),
                           .send_to = std::move(neighbours.send_to),
                           .receive_from = std::move(neighbours.receive_from)};
  Plans plans;
  for (std::size_t j = 0; j < jobs(); ++j) {
    request.elems = request.segment_elems = elems_of(j);
    plans.push_back(make_neighbour_sum(request));
  }
  return plans;
}

const NeighbourSums::Plans& NeighbourSums::plans_of(std::int64_t round) {
  if (graph_.rounds() == 0) plans_.clear();
  const std::int64_t key = graph_.rounds() == 0 ? round : round % graph_.rounds();
  const auto known = plans_.find(key);
  return known != plans_.end() ? known->second : plans_.emplace(key, make_plans(round)).first->second;
}

void NeighbourSums::submit(std::int64_t round, double& weight) {
  const Plans& plans = plans_of(round);
  tickets_.clear();
  for (std::size_t j = 0; j < jobs(); ++j) {
    const bool of_weight = j == pieces_.size();
    Job job;
    job.plan = plans[j];
    job.after = of_weight ? nullptr : staging_.fetch(pieces_[j].range);
    job.data = of_weight ? &weight : staging_.at(pieces_[j].range.begin);
    job.dtype = of_weight ? DType::f64 : context_.arenas.dtype();
    job.channel = context_.first_channel + static_cast<int>(j);
    tickets_.push_back(context_.engine.submit(std::move(job)));
  }
}

void NeighbourSums::settle(StepAccount& account) {
  for (std::size_t j = 0; j < jobs(); ++j) {
    {
      const SpanTimer timer(account.outcome().exchange_wait_s, SpanKind::exchange_wait);
      tickets_[j].wait();
    }
    account.note(tickets_[j], j < pieces_.size() ? pieces_[j].bucket : -1);
    if (j < pieces_.size()) staging_.store(pieces_[j].range);
  }
}

}  // namespace echelon::inline exchange
