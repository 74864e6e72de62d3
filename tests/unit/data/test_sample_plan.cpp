// SPDX-License-Identifier: Apache-2.0
// The plan as a table: the samples of every replica, for every sharding, number of replicas, shares and ragged end.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "data/file_shares.hpp"
#include "data/sample_plan.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using Ids = std::vector<std::int64_t>;

SamplePlanRequest request(Ids files, Ids batch, Sharding sharding, Ragged ragged = Ragged::wrap) {
  SamplePlanRequest made;
  made.file_chunk_rows.assign(files.size(), 8);
  made.file_samples = std::move(files);
  made.batch = std::move(batch);
  made.sharding = sharding;
  made.ragged = ragged;
  made.seed = 7;
  made.window_chunks = 4;
  return made;
}

Ids ids_of(const std::vector<SampleSlot>& slots) {
  Ids ids;
  for (const SampleSlot& slot : slots) ids.push_back(slot.id);
  return ids;
}

Ids step_ids(const SamplePlan& plan, std::int64_t epoch, std::int64_t step) {
  return ids_of(plan.all_ids(epoch, step));
}

Ids replica_ids(const SamplePlan& plan, std::int64_t epoch, int replica) {
  Ids all;
  for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step)
    for (const std::int64_t id : ids_of(plan.ids(epoch, step, replica))) all.push_back(id);
  return all;
}

Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

Ids iota(std::int64_t n) {
  Ids ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  return ids;
}

std::string refusal(const SamplePlanRequest& wanted) {
  return test::refusal<ConfigError>([&] { SamplePlan plan(wanted); });
}

struct Row {
  const char* what;
  Ids files;
  Ids batch;
  Sharding sharding;
  Ragged ragged;
  Ids owned;
  std::int64_t steps;
  SamplePlan::Coverage coverage;
};

}  // namespace

TEST_CASE("who owns what, how many steps, how often each sample comes", "[data][plan]") {
  constexpr auto kFile = Sharding::file, kRecord = Sharding::record, kReplicated = Sharding::replicated;
  constexpr auto kWrap = Ragged::wrap, kDrop = Ragged::drop, kZero = Ragged::zero_weight;
  const Row row = GENERATE(values<Row>({
      {"divides: file", {32, 32, 32, 32}, {8, 8}, kFile, kWrap, {64, 64}, 8, {0, 128, 0}},
      {"divides: record", {32, 32, 32, 32}, {8, 8}, kRecord, kWrap, {64, 64}, 8, {0, 128, 0}},
      {"one replica", {50, 14}, {16}, kFile, kWrap, {64}, 4, {0, 64, 0}},
      {"longest first", {10, 40, 20, 30}, {10, 10}, kFile, kWrap, {50, 50}, 5, {0, 100, 0}},
      {"unequal files wrap", {60, 20, 20}, {10, 10}, kFile, kWrap, {60, 40}, 6, {0, 80, 20}},
      {"unequal files drop", {60, 20, 20}, {10, 10}, kFile, kDrop, {60, 40}, 4, {20, 80, 0}},
      {"unequal files zero weight", {60, 20, 20}, {10, 10}, kFile, kZero, {60, 40}, 6, {0, 100, 0}},
      {"1 file, 3 replicas", {90}, {5, 5, 5}, kFile, kWrap, {30, 30, 30}, 6, {0, 90, 0}},
      {"2 files, 5 replicas", {70, 30}, {4, 4, 4, 4, 4}, kFile, kWrap, {20, 20, 20, 20, 20}, 5, {0, 100, 0}},
      {"2 files, 5 replicas, rest", {70, 33}, {4, 4, 4, 4, 4}, kFile, kZero, {20, 21, 20, 21, 21}, 6, {0, 103, 0}},
      {"shares 3:1 of files", {30, 30, 30, 30}, {9, 3}, kFile, kWrap, {90, 30}, 10, {0, 120, 0}},
      {"shares 3:1 of one file", {80}, {6, 2}, kFile, kWrap, {60, 20}, 10, {0, 80, 0}},
      {"shares 3:1 of records", {80}, {6, 2}, kRecord, kWrap, {60, 20}, 10, {0, 80, 0}},
      {"a lean share still gets a file", {40, 40}, {63, 1}, kFile, kDrop, {40, 40}, 0, {}},
      {"record wraps", {50, 50}, {12, 12}, kRecord, kWrap, {52, 48}, 5, {0, 80, 20}},
      {"record drops", {50, 50}, {12, 12}, kRecord, kDrop, {48, 48}, 4, {4, 96, 0}},
      {"record weighs zero", {50, 50}, {12, 12}, kRecord, kZero, {52, 48}, 5, {0, 100, 0}},
      {"batch beyond the data", {10}, {8, 8}, kRecord, kWrap, {8, 2}, 1, {0, 4, 6}},
      {"everyone everything", {50, 14}, {16, 16}, kReplicated, kWrap, {64, 64}, 4, {0, 0, 64}},
      {"everyone everything, dropped", {50, 15}, {16, 16}, kReplicated, kDrop, {65, 65}, 4, {}},
      {"as many samples as replicas", {2, 1}, {1, 1, 1}, kRecord, kWrap, {1, 1, 1}, 1, {0, 3, 0}},
  }));
  INFO(row.what);
  const SamplePlanRequest wanted = request(row.files, row.batch, row.sharding, row.ragged);
  if (row.steps == 0) {
    REQUIRE_THAT(refusal(wanted), Contains("leaves no step"));
    return;
  }
  const SamplePlan plan(wanted);
  const int replicas = static_cast<int>(row.batch.size());
  REQUIRE(plan.steps_per_epoch() == row.steps);
  REQUIRE(plan.replicas() == replicas);
  double slots_that_count = 0;
  for (int r = 0; r < replicas; ++r) {
    REQUIRE(plan.owned(r) == row.owned[static_cast<std::size_t>(r)]);
    for (std::int64_t step = 0; step < row.steps; ++step) {
      const auto slots = plan.ids(3, step, r);
      REQUIRE(static_cast<std::int64_t>(slots.size()) == plan.batch(r));
      const auto counting = std::count_if(slots.begin(), slots.end(), [](const SampleSlot& s) { return s.counts; });
      REQUIRE(plan.weight(3, step, r) == static_cast<double>(counting));
      for (const SampleSlot& slot : slots) REQUIRE((slot.id >= 0 && slot.id < plan.samples()));
      slots_that_count += static_cast<double>(counting);
    }
  }
  double weights = 0;
  for (std::int64_t step = 0; step < row.steps; ++step) weights += plan.weight(3, step);
  REQUIRE(weights == slots_that_count);
  const SamplePlan::Coverage coverage = plan.coverage(3);
  REQUIRE(coverage.never + coverage.once + coverage.more == plan.samples());
  if (row.coverage.never + row.coverage.once + row.coverage.more > 0) {
    REQUIRE(coverage.never == row.coverage.never);
    REQUIRE(coverage.once == row.coverage.once);
    REQUIRE(coverage.more == row.coverage.more);
  }
}

TEST_CASE("files are dealt within one file of each other and no replica is left out", "[data][plan]") {
  const std::uint64_t base = test::test_seed();
  for (std::uint64_t round = 0; round < 50; ++round) {
    const HashRng rng = HashRng(base, "deal").at(round);
    const std::size_t replicas = 1 + rng.below(0, 9), files = replicas + rng.below(1, 30);
    Ids samples, batch(replicas, 4);
    for (std::size_t i = 0; i < files; ++i) samples.push_back(1 + static_cast<std::int64_t>(rng.below(2 + i, 1000)));
    const std::vector<int> owner = deal_files(samples, batch);
    Ids load(replicas, 0);
    for (std::size_t i = 0; i < files; ++i) load[static_cast<std::size_t>(owner[i])] += samples[i];
    const auto [least, most] = std::minmax_element(load.begin(), load.end());
    REQUIRE(*least > 0);
    REQUIRE(*most - *least <= *std::max_element(samples.begin(), samples.end()));
  }
  REQUIRE(deal_files({5, 5, 5}, {100, 1, 1}) == std::vector<int>{0, 1, 2});
}

TEST_CASE("files are dealt by their samples and by the replicas' shares of the batch", "[data][plan]") {
  struct Row {
    Ids files, batch, owned;
  };
  for (const Row& row : {
           Row{{90, 10, 20, 30, 15, 15}, {4, 4}, {90, 90}},  // one file is as much as all others
           Row{{10, 10, 20}, {4, 4}, {20, 20}},              // the longest first, wherever it stands
           Row{{10, 10, 10, 10, 10, 10, 10, 10}, {6, 2}, {60, 20}},
           Row{{5, 40, 5, 100, 10}, {5, 2, 1}, {100, 40, 20}},
       }) {
    const SamplePlan plan(request(row.files, row.batch, Sharding::file));
    Ids owned;
    for (int r = 0; r < plan.replicas(); ++r) owned.push_back(plan.owned(r));
    CHECK(owned == row.owned);
    CHECK(plan.coverage(0).never == 0);
  }
}

TEST_CASE("fewer files than replicas are cut into runs that meet without a gap", "[data][plan]") {
  const SamplePlan plan(request({70, 30}, {4, 4, 4, 4, 4}, Sharding::file));
  REQUIRE(plan.runs(0).size() == 1);
  const auto runs = plan.runs(3);  // ids 60 to 79: the end of one file, the beginning of the other
  REQUIRE(runs.size() == 2);
  REQUIRE((runs[0].file == 0 && runs[0].first == 60 && runs[0].count == 10));
  REQUIRE((runs[1].file == 1 && runs[1].first == 0 && runs[1].count == 10));
}

TEST_CASE("sharding by record: a step has the same ids for any number of replicas and any shares", "[data][plan]") {
  const Ids files{37, 64, 90, 5};
  const SamplePlan one(request(files, {24}, Sharding::record));
  for (const Ids& batch : {Ids{12, 12}, Ids{6, 6, 6, 6}, Ids{1, 3, 20}, Ids{8, 8, 8}}) {
    const SamplePlan many(request(files, batch, Sharding::record));
    REQUIRE(many.steps_per_epoch() == one.steps_per_epoch());
    for (const std::int64_t epoch : {0, 1})
      for (std::int64_t step = 0; step < one.steps_per_epoch(); ++step)
        REQUIRE(step_ids(many, epoch, step) == step_ids(one, epoch, step));
  }
}

TEST_CASE("replicated: each replica goes through everything in an order of its own", "[data][plan]") {
  const SamplePlan plan(request({50, 14}, {16, 16, 16}, Sharding::replicated));
  std::set<Ids> orders;
  for (int r = 0; r < 3; ++r) {
    orders.insert(replica_ids(plan, 0, r));
    REQUIRE(sorted(replica_ids(plan, 0, r)) == iota(64));
  }
  REQUIRE(orders.size() == 3);
}

TEST_CASE("node: the replicas of a node read its files, each in an order of its own", "[data][plan]") {
  SamplePlanRequest wanted = request({40, 30, 20, 10, 9}, {8, 4, 8, 4, 4}, Sharding::node);
  wanted.nodes = {7, 2, 7, 2, 5};
  const SamplePlan plan(wanted);
  std::map<int, std::set<Ids>> orders, samples;  // keyed by node
  Ids all;
  for (int r = 0; r < 5; ++r) {
    Ids own = replica_ids(plan, 0, r);
    own.resize(static_cast<std::size_t>(plan.owned(r)));
    const int node = wanted.nodes[static_cast<std::size_t>(r)];
    if (orders[node].empty()) all.insert(all.end(), own.begin(), own.end());
    orders[node].insert(own), samples[node].insert(sorted(own));
    for (const SamplePlan::Run& run : plan.runs(r))
      CHECK(run.count == wanted.file_samples[static_cast<std::size_t>(run.file)]);
  }
  CHECK(sorted(all) == iota(109));
  CHECK((orders[7].size() == 2 && orders[2].size() == 2));
  CHECK((samples[7].size() == 1 && samples[2].size() == 1));
  CHECK(plan.owned(0) > plan.owned(4));

  wanted.nodes.clear();  // all replicas on one node
  CHECK(SamplePlan(wanted).owned(4) == 109);
  wanted.file_samples = {109}, wanted.file_chunk_rows = {8}, wanted.nodes = {0, 0, 1, 1, 1};  // fewer files than nodes
  const SamplePlan cut(wanted);
  CHECK((cut.owned(0) == cut.owned(1) && cut.owned(0) + cut.owned(2) == 109));
}

TEST_CASE("automatic takes files where there are enough", "[data][plan]") {
  REQUIRE(SamplePlan(request({9, 9}, {1, 1}, Sharding::automatic)).sharding() == Sharding::file);
  REQUIRE(SamplePlan(request({9, 9}, {1, 1, 1}, Sharding::automatic)).sharding() == Sharding::record);
}

TEST_CASE("data that cannot be divided over replicas are refused with the numbers", "[data][plan]") {
  for (const auto sharding : {Sharding::file, Sharding::record, Sharding::node, Sharding::replicated})
    REQUIRE_THAT(refusal(request({2, 1}, {1, 1, 1, 1}, sharding)),
                 Contains("4 replicas need at least 4 samples, but the data hold 3"));
  REQUIRE_THAT(refusal(request({10}, {1, 200}, Sharding::file)), Contains("replica 0 would have no sample"));
  REQUIRE_THAT(refusal(request({10}, {8, 8}, Sharding::record, Ragged::drop)), Contains("do not fill one batch of 16"));
}

TEST_CASE("without a shuffle the order is that of the files", "[data][plan]") {
  SamplePlanRequest wanted = request({20, 12}, {8}, Sharding::record);
  wanted.shuffle = false;
  REQUIRE(replica_ids(SamplePlan(wanted), 5, 0) == iota(32));
  wanted.sharding = Sharding::file;
  wanted.batch = {4, 4};
  const Ids second = replica_ids(SamplePlan(wanted), 0, 1);
  REQUIRE(Ids(second.begin(), second.begin() + 12) == Ids{20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31});
}

TEST_CASE("the shuffle changes with epoch and seed and stays inside a window of chunks", "[data][plan]") {
  SamplePlanRequest wanted = request({400, 240}, {16}, Sharding::record);
  const SamplePlan plan(wanted);
  const Ids first = replica_ids(plan, 0, 0);
  REQUIRE(sorted(first) == iota(640));
  REQUIRE(first != iota(640));
  REQUIRE(first != replica_ids(plan, 1, 0));
  wanted.seed = 8;
  REQUIRE(first != replica_ids(SamplePlan(wanted), 0, 0));
  for (std::size_t window = 0; window < 640 / 32; ++window) {  // a window is 4 chunks of 8 records
    std::set<std::int64_t> chunks;
    for (std::size_t i = 0; i < 32; ++i) chunks.insert(first[window * 32 + i] / 8);
    REQUIRE(chunks.size() == 4);
  }
}

TEST_CASE("the plan is pure: any order of asking, any copy, the same answer", "[data][plan]") {
  const auto sharding = GENERATE(Sharding::file, Sharding::record, Sharding::node, Sharding::replicated);
  const SamplePlanRequest wanted = request({37, 64, 90, 5}, {5, 3, 2}, sharding);
  const SamplePlan plan(wanted), fresh(wanted);
  const SamplePlan copy = plan;
  const Ids late = step_ids(plan, 9, 3);
  for (const std::int64_t epoch : {2, 0, 9, 1, 9}) step_ids(copy, epoch, 0);
  REQUIRE(step_ids(plan, 9, 3) == late);
  REQUIRE(step_ids(fresh, 9, 3) == late);
}

TEST_CASE("golden: resumed runs of other builds must see the same samples", "[data][plan]") {
  const auto at = [](Sharding sharding, std::int64_t epoch, std::int64_t step) {
    return step_ids(SamplePlan(request({37, 64, 90}, {3, 3}, sharding)), epoch, step);
  };
  CHECK(at(Sharding::record, 0, 0) == Ids{155, 119, 152, 122, 190, 104});
  CHECK(at(Sharding::record, 1, 30) == Ids{86, 107, 52, 47, 46, 48});
  CHECK(at(Sharding::file, 0, 2) == Ids{136, 133, 157, 75, 33, 35});
  CHECK(at(Sharding::replicated, 4, 1) == Ids{96, 124, 100, 109, 77, 81});
}

TEST_CASE("a warm-up with few replicas deals each sample once an epoch", "[data][plan]") {
  for (int round = 0; round < 60; ++round) {
    const Ids draw = test::random_integers(8, 0, 1000, "warm-up " + std::to_string(round));
    const std::int64_t replicas = 2 + draw[0] % 4;
    SamplePlanRequest wanted = request({40 + draw[1] % 60, 7, 30 + draw[2] % 50}, {}, Sharding::automatic,
                                       draw[3] % 2 == 0 ? Ragged::zero_weight : Ragged::drop);
    for (std::int64_t r = 0; r < replicas; ++r) wanted.batch.push_back(1 + (draw[4] + r) % 3);
    wanted.sharding = Sharding::record;
    const SamplePlan without(wanted);
    wanted.sharding = Sharding::automatic;
    wanted.warmup = {.replicas = 1 + draw[5] % (replicas + 1), .each_epoch = draw[6] % 2 == 0};
    if (draw[7] % 2 == 0)
      wanted.warmup.steps = 1 + draw[7] % 150;
    else
      wanted.warmup.epochs = static_cast<double>(draw[7] % 100) / (wanted.warmup.each_epoch ? 100 : 40) + 0.01;
    const SamplePlan plan(wanted);
    const bool warms = wanted.warmup.replicas < replicas;
    CAPTURE(round, replicas, wanted.warmup.replicas, wanted.warmup.steps, wanted.warmup.epochs);
    CHECK(plan.sharding() == Sharding::record);
    CHECK((plan.warmup_steps(0) > 0) == warms);
    std::int64_t before = 0, warm = 0;
    double alone = 0;  // samples of warm-ups
    for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
      CHECK(plan.steps_before(epoch) == before);
      before += plan.steps_in(epoch);
      warm += plan.warmup_steps(epoch);
      Ids all;
      for (std::int64_t step = 0; step < plan.steps_in(epoch); ++step)
        for (int r = 0; r < static_cast<int>(replicas); ++r) {
          const bool waits = step < plan.warmup_steps(epoch) && r >= wanted.warmup.replicas;
          const std::vector<SampleSlot> slots = plan.ids(epoch, step, r);
          REQUIRE(plan.takes(epoch, step, r) == !waits);
          REQUIRE(slots.size() == (waits ? 0U : static_cast<std::size_t>(plan.batch(r))));
          std::int64_t counting = 0;
          for (const SampleSlot& slot : slots)
            if (slot.counts) all.push_back(slot.id), ++counting;
          REQUIRE(plan.counting(epoch, step, r) == counting);
          if (step < plan.warmup_steps(epoch)) alone += static_cast<double>(counting);
        }
      std::int64_t global = 0;
      for (const std::int64_t batch : wanted.batch) global += batch;
      if (wanted.ragged == Ragged::zero_weight) CHECK(sorted(all) == iota(plan.samples()));
      CHECK(std::set<std::int64_t>(all.begin(), all.end()).size() == all.size());
      CHECK(static_cast<std::int64_t>(all.size()) > plan.samples() - global);
      if (plan.warmup_steps(epoch) == 0) CHECK(plan.steps_in(epoch) == without.steps_per_epoch());
    }
    if (!warms) continue;
    if (wanted.warmup.each_epoch) CHECK(plan.steps_per_epoch() == plan.steps_in(3));
    if (wanted.warmup.steps > 0 && !wanted.warmup.each_epoch && warm < plan.steps_before(5))
      CHECK(warm == wanted.warmup.steps);
    if (wanted.warmup.steps == 0 && !wanted.warmup.each_epoch) {
      const auto of_a_step = static_cast<double>(plan.row_of(static_cast<int>(wanted.warmup.replicas)));
      CHECK(std::abs(alone - wanted.warmup.epochs * static_cast<double>(plan.samples())) <=
            of_a_step * (1 + wanted.warmup.epochs));
    }
  }
}

}  // namespace echelon
