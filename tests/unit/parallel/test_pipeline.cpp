// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/stages.hpp"
#include "tests/support/random.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;
using Catch::Matchers::Contains;

double slowest(const std::vector<int>& stages, const std::vector<double>& costs) {
  std::vector<double> sums(static_cast<std::size_t>(stages.back()) + 1);
  for (std::size_t i = 0; i < stages.size(); ++i) sums[static_cast<std::size_t>(stages[i])] += costs[i];
  return *std::max_element(sums.begin(), sums.end());
}

// Finds the least slowest stage by trying every way to cut.
double least_slowest(const std::vector<double>& costs, std::size_t begin, int stages) {
  if (stages == 1) return std::accumulate(costs.begin() + static_cast<std::ptrdiff_t>(begin), costs.end(), 0.0);
  double best = INFINITY, head = 0;
  for (std::size_t end = begin + 1; end + static_cast<std::size_t>(stages) - 1 <= costs.size(); ++end) {
    head += costs[end - 1];
    best = std::min(best, std::max(head, least_slowest(costs, end, stages - 1)));
  }
  return best;
}

TEST_CASE("stages are consecutive, none is empty, and the slowest is as cheap as can be", "[parallel][stages]") {
  const Graph graph = small_cnn();
  const HashRng draws(test_seed(), "stages");
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::vector<double> costs;
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) costs.push_back(draws.at(round).uniform(i));
    for (int stages = 1; stages <= 5; ++stages) {
      const std::vector<int> of = assign_stages(graph, costs, stages);
      CHECK(of.front() == 0);
      CHECK(of.back() == stages - 1);
      for (std::size_t i = 1; i < of.size(); ++i) CHECK((of[i] == of[i - 1] || of[i] == of[i - 1] + 1));
      CHECK(slowest(of, costs) == Approx(least_slowest(costs, 0, stages)));
    }
  }
}

TEST_CASE("of equally dear stages those are chosen that send least", "[parallel][stages]") {
  const Graph graph = small_resnet20();
  const std::vector<double> nothing(graph.nodes().size());
  const std::vector<int> of = assign_stages(graph, nothing, 2);
  const std::vector<Cut> cuts = cuts_between(graph, of);
  REQUIRE(cuts.size() == 1);
  CHECK(cuts[0].shape.elems() <= 5);  // cuts lie behind the pool or the last layer, not inside a residual block
}

TEST_CASE("impossible numbers of stages are refused", "[parallel][stages]") {
  Graph graph = small_cnn();
  const std::vector<double> costs(graph.nodes().size(), 1);
  CHECK_THROWS_WITH(assign_stages(graph, costs, static_cast<int>(costs.size()) + 1),
                    Contains("more stages than the model has layers"));
  graph.set_stage(1);  // the loss
  const std::vector<int> of = assign_stages(graph, costs, 2);
  CHECK(std::count(of.begin(), of.end(), 1) == 1);
  CHECK_THROWS_WITH(assign_stages(graph, costs, 3), Contains("end with 1"));
  graph.set_stage(2);
  CHECK_THROWS_WITH(assign_stages(graph, costs, 3), Contains("'loss' has stage = 2 after stage 0"));
}

TEST_CASE("a value crosses once for each stage that reads it", "[parallel][pipeline]") {
  const Graph graph = small_batch_norm_net();  // conv1 norm1 bent conv2 norm2 add(norm2, bent) relu flatten dense loss
  const std::vector<int> stages = {0, 0, 0, 1, 1, 2, 2, 2, 2, 2};
  const std::vector<Cut> cuts = cuts_between(graph, stages);
  REQUIRE(cuts.size() == 3);
  CHECK(cuts[0].value == "bent");
  CHECK(cuts[0].to == 1);
  CHECK(cuts[1].value == "bent");  // this value skips a stage
  CHECK(cuts[1].from == 0);
  CHECK(cuts[1].to == 2);
  CHECK(cuts[2].value == "norm2");
  std::set<std::string> names;
  std::int64_t elems = 0;
  for (int stage = 0; stage < 3; ++stage) {
    const Graph part = stage_graph(graph, stages, cuts, stage);
    CHECK((part.loss() >= 0) == (stage == 2));
    CHECK((part.find("samples") >= 0) == (stage == 0));
    CHECK((part.find("labels") >= 0) == (stage == 2));
    elems += part.parameters().elems();
    for (const Parameter& p : part.parameters().all()) names.insert(p.name);
  }
  CHECK(elems == graph.parameters().elems());
  CHECK(names.size() == static_cast<std::size_t>(graph.parameters().size()));
}

TEST_CASE("schedules run every pass once, backwards after forwards, and hold what they promise",
          "[parallel][pipeline]") {
  for (const char* schedule : {"gpipe", "1f1b"})
    for (int stages = 1; stages <= 6; ++stages)
      for (int stage = 0; stage < stages; ++stage)
        for (int m = 1; m <= 9; ++m) {
          const std::vector<Pass> passes = pipeline_passes(schedule, stages, stage, m);
          CHECK(passes.size() == static_cast<std::size_t>(2 * m));
          int forward = 0, backward = 0;
          for (const Pass& pass : passes) {
            CHECK(pass.micro == (pass.backward ? backward++ : forward++));
            CHECK(backward <= forward);
          }
          const bool gpipe = std::string(schedule) == "gpipe";
          CHECK(most_in_flight(passes) == (gpipe ? m : std::min(m, stages - stage)));
        }
  CHECK(bubble_share(4, 1) == 0.75);
  CHECK(bubble_share(4, 9) == 0.25);
  CHECK(bubble_share(1, 3) == 0);
}

// Every stage runs its passes in order, each in one unit of time, as soon as its inputs exist.
double bubble_of(const std::string& schedule, int stages, int m) {
  std::vector<std::vector<Pass>> all;
  for (int s = 0; s < stages; ++s) all.push_back(pipeline_passes(schedule, stages, s, m));
  const auto at = [&](int s, int micro, bool backward) {
    return static_cast<std::size_t>((s * m + micro) * 2 + (backward ? 1 : 0));
  };
  std::vector<int> done(static_cast<std::size_t>(2 * stages * m), -1);
  std::vector<std::size_t> next(all.size());
  std::vector<int> free_at(all.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < stages; ++s) {
      const auto i = static_cast<std::size_t>(s);
      if (next[i] == all[i].size()) continue;
      const Pass pass = all[i][next[i]];
      const int from = pass.backward ? s + 1 : s - 1;
      int ready = pass.backward ? done[at(s, pass.micro, false)] : 0;
      if (from >= 0 && from < stages) {
        if (done[at(from, pass.micro, pass.backward)] < 0) continue;
        ready = std::max(ready, done[at(from, pass.micro, pass.backward)]);
      }
      free_at[i] = done[at(s, pass.micro, pass.backward)] = std::max(free_at[i], ready) + 1;
      ++next[i];
      moved = true;
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(next[i] == all[i].size());
  const int end = *std::max_element(free_at.begin(), free_at.end());
  return 1 - 2.0 * m / end;
}

TEST_CASE("both schedules have the bubble of the formula", "[parallel][pipeline]") {
  for (const char* schedule : {"gpipe", "1f1b"})
    for (int stages = 1; stages <= 5; ++stages)
      for (int m = 1; m <= 8; ++m) CHECK(bubble_of(schedule, stages, m) == Approx(bubble_share(stages, m)));
}

}  // namespace
}  // namespace echelon
