// SPDX-License-Identifier: Apache-2.0
// Compares models split over the ranks of this launch with the whole model, in double.
#include <fmt/format.h>

#include "base/check.hpp"
#include "comm/group.hpp"
#include "verify/check.hpp"
#include "verify/split_models.hpp"

namespace echelon::verify {
namespace {

// Each rank holds its part; together the parts must equal every replica's model.
std::string equals_whole(VerifyContext& context, const ParallelConfig& parallel, Graph graph) {
  SplitRun run{.replicas = {.graph = std::move(graph), .shares = {}, .accumulation = 3}, .parallel = parallel};
  run.parallel.allow_across_nodes = true;
  const int group = run.group_size();
  needs(context.ranks % group == 0, fmt::format("needs a multiple of {} ranks", group));
  run.replicas.shares.assign(static_cast<std::size_t>(context.ranks / group), 6);
  run.replicas.steps = context.quick ? 5 : 20;
  std::vector<double> weights = train_split_rank(context.transport(), run).weights, holders;
  for (const double weight : weights) holders.push_back(weight == 0 ? 0 : 1);
  Engine engine(context.transport());
  Group(engine, 1).sum(weights);
  Group(engine, 1).sum(holders);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (holders[i] > 0) weights[i] /= holders[i];
  const ReplicaResult whole = train_replicas(on_one_replica(run.replicas, true));
  const double distance = tensor_distance(run.replicas.graph.parameters(), weights, whole.weights);
  ECHELON_CHECK(distance <= 1e-8, "weights of the split model differ by {:.2g} from those of the whole one", distance);
  return fmt::format("within {:.1e}", distance);
}

VerifyCheck check(const std::string& name, const ParallelConfig& parallel, Graph (*graph)(), bool in_quick) {
  return {.group = "split model equals whole",
          .name = name,
          .body = [=](VerifyContext& context) { return equals_whole(context, parallel, graph()); },
          .limit_s = 120,
          .in_quick = in_quick};
}

Graph batch_norm_net() { return small_batch_norm_net(); }

}  // namespace

std::vector<VerifyCheck> split_checks() {
  return {
      check("2 stages, 1f1b", {.pipeline = 2}, batch_norm_net, true),
      check("2 stages, gpipe", {.pipeline = 2, .schedule = "gpipe"}, batch_norm_net, false),
      check("3 stages", {.pipeline = 3}, batch_norm_net, false),
      check("2 shards of units", {.tensor = 2}, batch_norm_net, true),
      check("3 shards of units", {.tensor = 3}, batch_norm_net, false),
      check("2 stages of 2 shards", {.pipeline = 2, .tensor = 2}, batch_norm_net, false),
      check("2 spatial shards", {.space = 2}, small_tall_net, true),
      check("2 stages of 2 spatial shards", {.pipeline = 2, .space = 2}, small_tall_net, false),
  };
}

}  // namespace echelon::verify
