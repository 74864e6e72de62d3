// SPDX-License-Identifier: Apache-2.0
#include "planner/plan_pricer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "comm/collective/builder.hpp"

namespace echelon::inline planner {
namespace {

constexpr int kFew = 32, kFewOdd = 24;
constexpr double kUnknownPlan = 0.2;

// Whether the algorithm consists of messages, whose times are modelled.
bool has_plan(const Collective& what) {
  const AlgorithmTraits own = algorithm_traits(what.algorithm), inner = algorithm_traits(what.inner);
  return !own.library && !own.in_memory && !(own.nests && inner.in_memory);
}

std::shared_ptr<const Plan> plan_of(const Collective& what, const AllreduceRequest& request) {
  const AllreduceModel& model = allreduce_model(what.algorithm);
  return model.plan ? model.plan(request) : make_allreduce(model.name, request);
}

// Rounds to four sizes per doubling, so that buckets of similar sizes share a simulation.
std::int64_t rounded(std::int64_t elems) { return std::llround(std::exp2(std::round(4 * std::log2(elems)) / 4)); }

double levels(int ranks) { return std::log2(static_cast<double>(ranks)); }

}  // namespace

AllreduceRequest request_of(const Collective& what, int ranks) {
  AllreduceRequest request{.ranks = ranks, .elems = what.elems, .segment_elems = what.segment_elems};
  request.servers = what.servers, request.inner = what.inner, request.outer = what.outer;
  return request;
}

double simulated_s(const Collective& what, const RankPlacement& placement, const Network& network) {
  AllreduceRequest request = request_of(what, placement.ranks);
  request.hosts = placement.hosts_of_ranks();
  TimedPlans collective;
  for (request.rank = 0; request.rank < request.ranks; ++request.rank)
    collective.plans.push_back(plan_of(what, request));
  return plan_times_s({collective}, request.hosts, network, what.elem_bytes).front();
}

double plan_steps(const Collective& what, const RankPlacement& placement) {
  if (!has_plan(what)) return std::numeric_limits<double>::infinity();
  const double k = placement.ranks, n = static_cast<double>(what.elems);
  const double segment = static_cast<double>(what.segment_elems > 0 ? what.segment_elems : kDefaultSegment);
  const AllreduceModel& model = allreduce_model(what.algorithm);
  return 2.5 * std::max(model.messages(k), model.buffers(k) * n / segment);
}

double model_error(const Collective& what, const RankPlacement& placement) {
  if (!has_plan(what)) return kUnknownPlan;
  const FormError& error = allreduce_model(what.algorithm).error;
  if (error.odd > 0 && !std::has_single_bit(static_cast<unsigned>(placement.ranks))) return error.odd;
  return placement.ranks_a_host > 1 ? error.shared : error.alone;
}

bool PlanPricer::may_simulate(const Collective& what, int ranks) {
  const RankPlacement placement{.ranks = ranks, .ranks_a_host = ranks_a_host_};
  const double steps = plan_steps(what, placement);
  const double most = model_error(what, placement) <= kExactForm ? kMostSteps : kMostUnsure;
  if (steps > std::min(most, steps_left_)) return false;
  steps_left_ -= steps;
  return true;
}

double PlanPricer::closed_s(const Collective& what, int ranks) const {
  return closed_cost(what, {.ranks = ranks, .ranks_a_host = ranks_a_host_}, network_).time_s;
}

double PlanPricer::simulated(const Collective& what, int ranks) {
  const Key key{what.algorithm, what.elems, what.elem_bytes, ranks};
  const auto found = simulated_.find(key);
  if (found != simulated_.end()) return found->second;
  return simulated_[key] = simulated_s(what, {.ranks = ranks, .ranks_a_host = ranks_a_host_}, network_);
}

double PlanPricer::corrected_s(const Collective& what, int ranks, double closed) {
  using Correction = AllreduceModel::Correction;
  const AllreduceModel& model = allreduce_model(what.algorithm);
  const bool exact = model.exact && model_error(what, {.ranks = ranks, .ranks_a_host = ranks_a_host_}) <= kExactForm;
  if (!has_plan(what) || exact) return closed;
  const bool odd = !std::has_single_bit(static_cast<unsigned>(ranks));
  const int few = std::min(ranks, std::max(odd ? kFewOdd : kFew, 4 * ranks_a_host_));
  if (model.correction == Correction::levels) {
    const auto error = [&](int k) { return simulated(what, k) - closed_s(what, k); };
    const double at_few = error(few), slope = at_few - error(few / 2);
    return std::max(closed / 2, closed + at_few + (levels(ranks) - levels(few)) * slope);
  }
  if (model.correction == Correction::buffer)
    return std::max(closed / 2, closed + simulated(what, few) - closed_s(what, few));
  Collective part = what;
  part.elems = rounded(std::max<std::int64_t>(1, what.elems * few / ranks));
  if (what.servers > 0) part.servers = std::max(1, what.servers * few / ranks);
  return closed * simulated(part, few) / closed_s(part, few);
}

double PlanPricer::once(const std::string& key, const std::function<double()>& find) {
  const auto known = found_.find(key);
  return known != found_.end() ? known->second : found_[key] = find();
}

CollectiveCost PlanPricer::cost(const Collective& what, int ranks) {
  if (ranks == 1 || what.elems == 0) return {};
  const Key key{what.algorithm, what.elems, what.elem_bytes, ranks};
  auto found = known_.find(key);
  if (found == known_.end()) {
    const RankPlacement placement{.ranks = ranks, .ranks_a_host = ranks_a_host_};
    Known known{.cost = closed_cost(what, placement, network_), .simulated = may_simulate(what, ranks)};
    known.cost.time_s = known.simulated ? simulated(what, ranks) : corrected_s(what, ranks, known.cost.time_s);
    known.cost.busy_s = std::min(known.cost.busy_s, known.cost.time_s);
    found = known_.emplace(key, known).first;
  }
  if (!found->second.simulated) note_formula(model_error(what, {.ranks = ranks, .ranks_a_host = ranks_a_host_}));
  return found->second.cost;
}

}  // namespace echelon::inline planner
