// SPDX-License-Identifier: Apache-2.0
// Covers what the rows of test_allreduce.cpp leave open: numbers of servers, hosts of any shape, one tree for every k.
#include <catch2/catch.hpp>
#include <numeric>

#include "base/error.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/halves.hpp"
#include "comm/collective/hierarchical.hpp"
#include "comm/collective/server.hpp"
#include "tests/support/allreduce_check.hpp"
#include "tests/support/random.hpp"

using namespace echelon;
using test::Row;

namespace {

template <class Make>
RankPlans plans_of(AllreduceRequest request, Make make) {
  RankPlans plans;
  for (request.rank = 0; request.rank < request.ranks; ++request.rank) plans.push_back(make(request));
  return plans;
}

RankPlans plans_of(const std::string& name, const AllreduceRequest& request) {
  return plans_of(request, [&](const AllreduceRequest& of_rank) { return make_allreduce(name, of_rank); });
}

// A row with these messages and this payload, which does not bound what one rank sends and keeps.
Row total(std::int64_t messages, std::int64_t payload_elems) {
  constexpr std::int64_t kAny = std::int64_t{1} << 40;
  return {.messages = messages, .payload_elems = payload_elems, .most_sent_elems = kAny, .scratch_elems = kAny};
}

std::int64_t server_messages(std::int64_t givers, int servers, std::int64_t n, std::int64_t segment, bool whole) {
  std::int64_t messages = 0;
  if (whole) return 2 * givers * test::pieces(n, segment);
  for (int s = 0; s < servers; ++s) messages += 2 * givers * test::pieces(n / servers + (s < n % servers), segment);
  return messages;
}

void check_servers(const AllreduceRequest& request) {
  CAPTURE(request.ranks, request.servers, request.dedicated_servers, request.elems, request.segment_elems);
  const int workers = request.ranks - (request.dedicated_servers ? request.servers : 0);
  const std::int64_t givers = request.dedicated_servers ? workers : request.ranks - 1, n = request.elems;
  const Row row =
      total(server_messages(givers, request.servers, n, request.segment_elems, request.whole_on >= 0), 2 * givers * n);
  const RankPlans plans = plans_of("server", request);
  test::check_exact_workers(plans, n, kLeastWindow, DType::f64, row, workers);
  const Price price = price_allreduce("server", request);
  CHECK(price.messages == row.messages);
  CHECK(price.payload_elems == row.payload_elems);
  if (n > 0 && request.ranks > 1 && n <= 65536) CHECK(longest_chain(plans) <= 2);
}

// Counts the elements that cross from host to host.
std::int64_t between_hosts(const RankPlans& plans, const std::vector<int>& hosts) {
  std::int64_t elems = 0;
  for (std::size_t r = 0; r < plans.size(); ++r)
    for (std::int64_t i = 0; i < plans[r]->steps(); ++i) {
      const Step step = plans[r]->step(i);
      if (step.kind == StepKind::send && hosts[r] != hosts[static_cast<std::size_t>(step.peer)])
        elems += step.range.elems();
    }
  return elems;
}

struct Cluster {
  const char* name;
  std::vector<int> hosts;
  bool even;
};

std::vector<Cluster> clusters() {
  return {{"2 x 2", {0, 0, 1, 1}, true},
          {"2 x 2, dealt out", {0, 1, 0, 1}, true},
          {"2 x 3", {0, 0, 0, 1, 1, 1}, true},
          {"3 + 1", {0, 0, 0, 1}, false},
          {"1 + 4 + 2", {0, 1, 1, 1, 1, 2, 2}, false},
          {"4 x 4", {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}, true},
          {"one host", {0, 0, 0, 0, 0}, true},
          {"all alone", {0, 1, 2, 3, 4}, true}};
}

// Repeats by hand the price of the parts.
std::int64_t inner_steps(const std::string& inner, int ranks) {
  return ranks == 1 ? 0 : test::row_of(inner, ranks, 1 << 20, 1 << 20).steps / 2;
}

void check_hierarchical(const Cluster& cluster, AllreduceRequest request) {
  CAPTURE(cluster.name, request.inner, request.outer, request.elems, request.segment_elems);
  const int nodes = 1 + *std::max_element(cluster.hosts.begin(), cluster.hosts.end());
  const std::int64_t n = request.elems;
  const RankPlans plans = plans_of("hierarchical", request);
  const Price price = price_allreduce("hierarchical", request);
  const std::int64_t outer = nodes == 1 || n == 0 ? 0 : test::row_of(request.outer, nodes, n, 0).payload_elems;
  const std::int64_t inner = algorithm_traits(request.inner).in_memory ? 0 : 2 * (request.ranks - nodes) * n;
  test::check_exact(plans, n, kLeastWindow, DType::f32, total(price.messages, inner + outer));
  CHECK(price.payload_elems == inner + outer);
  CHECK(between_hosts(plans, cluster.hosts) == outer);
  if (n < 1000 || request.segment_elems > 0) return;
  std::vector<int> inside(static_cast<std::size_t>(nodes));
  for (const int host : cluster.hosts) ++inside[static_cast<std::size_t>(host)];
  const std::int64_t across = nodes == 1 ? 0 : test::row_of(request.outer, nodes, n, 0).steps;
  const int most = *std::max_element(inside.begin(), inside.end());
  CHECK(price.steps == 2 * inner_steps(request.inner, most) + across);
  CHECK(longest_chain(plans) <= price.steps);
  if (cluster.even) CHECK(longest_chain(plans) == price.steps);
}

// Sums the leaves [first, last) in one binary tree.
float tree_sum(const std::vector<std::vector<float>>& leaves, std::size_t first, std::size_t last, std::size_t i) {
  if (last - first == 1) return leaves[first][i];
  const std::size_t middle = (first + last) / 2;
  return tree_sum(leaves, first, middle, i) + tree_sum(leaves, middle, last, i);
}

}  // namespace

TEST_CASE("a server's all-reduce, with any number of servers in the workers or beside them", "[contract][allreduce]") {
  for (int k = 1; k <= 17; ++k)
    for (const int servers : {1, 2, 3, k - 1, k})
      for (const bool dedicated : {false, true}) {
        if (servers < 1 || servers > k - (dedicated ? 1 : 0)) continue;
        for (const std::int64_t n : std::initializer_list<std::int64_t>{0, 1, k - 1, k, k + 1, 4099})
          for (const std::int64_t segment : {0, 100}) {
            AllreduceRequest request{.ranks = k, .elems = n, .segment_elems = segment};
            request.servers = servers, request.dedicated_servers = dedicated;
            check_servers(request);
            request.whole_on = static_cast<int>(n % servers);
            check_servers(request);
          }
      }
}

TEST_CASE("push leaves each part summed on its server, pull brings it to all", "[contract][allreduce]") {
  AllreduceRequest request{.ranks = 6, .elems = 1001, .hosts = {0, 0, 0, 1, 1, 1}};
  request.servers = 3;
  const RankPlans push = plans_of(request, make_push), pull = plans_of(request, make_pull);
  const Parts parts = server_parts(request);
  const auto serves = [&](std::size_t r) { return !parts[r].empty(); };
  CHECK((serves(0) && serves(1) && serves(3)));  // servers are placed on each host in turn
  std::vector<std::vector<double>> data(6, std::vector<double>(1001, 1));
  test::run_on(push, data, kLeastWindow);
  for (std::size_t r = 0; r < 6; ++r)
    for (std::int64_t i = parts[r].begin; i < parts[r].end; ++i) data[r][static_cast<std::size_t>(i)] *= 10;
  test::run_on(pull, data, kLeastWindow);
  CHECK(data == std::vector<std::vector<double>>(6, std::vector<double>(1001, 60)));
}

TEST_CASE("hierarchical over hosts of any shape: its price is that of its parts", "[contract][allreduce]") {
  for (const Cluster& cluster : clusters())
    for (const std::string& inner : halves_names())
      for (const std::string& outer : outer_names())
        for (const std::int64_t n : {0, 1, 2, 5, 4099})
          for (const std::int64_t segment : {0, 100}) {
            AllreduceRequest request{.ranks = static_cast<int>(cluster.hosts.size()),
                                     .elems = n,
                                     .segment_elems = segment,
                                     .hosts = cluster.hosts};
            request.inner = inner, request.outer = outer;
            check_hierarchical(cluster, request);
          }
}

TEST_CASE("one tree over leaves: the same bits for every power of two of ranks", "[contract][allreduce]") {
  constexpr std::size_t kLeaves = 8, kElems = 1003;
  std::vector<std::vector<float>> leaves(kLeaves);
  for (std::size_t leaf = 0; leaf < kLeaves; ++leaf) {
    const std::vector<double> values = test::random_values(kElems, "leaf " + std::to_string(leaf));
    leaves[leaf].assign(values.begin(), values.end());
  }
  std::vector<float> expected(kElems);
  for (std::size_t i = 0; i < kElems; ++i) expected[i] = tree_sum(leaves, 0, kLeaves, i);
  for (const std::string& name : allreduce_names())
    for (const std::size_t k : {1, 2, 4, 8}) {
      CAPTURE(name, k);
      std::vector<std::vector<float>> data(k, std::vector<float>(kElems));
      for (std::size_t r = 0; r < k; ++r)
        for (std::size_t i = 0; i < kElems; ++i)
          data[r][i] = tree_sum(leaves, r * kLeaves / k, (r + 1) * kLeaves / k, i);
      const AllreduceRequest request{.ranks = static_cast<int>(k), .elems = kElems, .segment_elems = 100};
      test::run_on(plans_of(name, request), data, 16);
      if (algorithm_traits(name).one_tree)
        CHECK(data[0] == expected);
      else if (k == 8)
        CHECK(data[0] != expected);  // otherwise the test above would show nothing
    }
}

TEST_CASE("servers and parts that do not fit are refused", "[contract][allreduce]") {
  AllreduceRequest request{.ranks = 4, .elems = 100};
  request.servers = 5;
  CHECK_THROWS_WITH(make_allreduce("server", request), Catch::Contains("5 servers of 4 ranks; at most 4"));
  request.servers = 4, request.dedicated_servers = true;
  CHECK_THROWS_WITH(make_allreduce("server", request), Catch::Contains("at most 3"));
  request.inner = "binomail";
  CHECK_THROWS_WITH(make_allreduce("hierarchical", request), Catch::Contains("did you mean 'binomial'"));
  request.inner = "ring", request.outer = "mpi";
  CHECK_THROWS_AS(make_allreduce("hierarchical", request), ConfigError);
  CHECK_THROWS_AS(price_allreduce("hierarchical", request), ConfigError);
}
