// SPDX-License-Identifier: Apache-2.0
// The exchange beside back-propagation, by hand and compared with the plans of all buckets together on virtual time.
#include <catch2/catch.hpp>

#include "comm/collective/algorithms.hpp"
#include "planner/card_queue.hpp"
#include "planner/plan_pricer.hpp"

using namespace echelon;

TEST_CASE("a card serves one transfer at a time", "[planner]") {
  const auto one = [](double ready_s, int priority) {
    return CardTransfer{.ready_s = ready_s, .priority = priority, .stages = {{.card = 0, .busy_s = 2, .latency_s = 1}}};
  };
  CHECK(ends_of({one(0, 3), one(0.5, 2), one(1, 1)}, false) == std::vector<double>{3, 5, 7});
  CHECK(ends_of({one(0, 3), one(0.5, 2), one(1, 1)}, true) == std::vector<double>{7, 5.5, 4});
  CHECK(ends_of({one(10, 0)}, true) == std::vector<double>{13});
  CHECK(ends_of({{.ready_s = 1, .priority = 0, .stages = {}}}, true) == std::vector<double>{0});
}

TEST_CASE("each dependent message of the urgent one waits for a message of the other", "[planner]") {
  const auto transfer = [](double ready_s, int priority, double busy_s, int hops, double piece_s) {
    return CardTransfer{.ready_s = ready_s,
                        .priority = priority,
                        .stages = {{.card = 0, .busy_s = busy_s, .latency_s = 0, .hops = hops, .piece_s = piece_s}}};
  };
  // 3 messages wait for 2 s each, while the card works on the other transfer.
  CHECK(ends_of({transfer(0, 2, 20, 1, 2), transfer(5, 1, 3, 3, 1)}, true) == std::vector<double>{23, 5 + 6 + 3});
  // The other transfer ends earlier.
  CHECK(ends_of({transfer(0, 2, 9, 1, 2), transfer(5, 1, 3, 3, 1)}, true) == std::vector<double>{9, 12});
  // Without priorities nobody overtakes; a third transfer, to another card, starts meanwhile.
  CHECK(ends_of({transfer(0, 2, 20, 1, 2), transfer(5, 1, 3, 3, 1)}, false) == std::vector<double>{20, 23});
  CardTransfer beside = transfer(6, 1, 1, 1, 1);
  beside.stages[0].card = 1;
  CHECK(ends_of({transfer(0, 2, 20, 1, 2), transfer(5, 1, 3, 3, 1), beside}, true) == std::vector<double>{23, 14, 7});
}

TEST_CASE("the urgent one is held for its messages once, whatever these round to", "[planner]") {
  for (int i = 1; i <= 50; ++i) {
    const CardTransfer other{.ready_s = 0, .priority = 2, .stages = {{0, 1000, 0, 1, 0.1 * i}}};
    const CardTransfer urgent{.ready_s = 0.07 * i, .priority = 1, .stages = {{0, 1, 0, 3, 1}}};
    CHECK(ends_of({other, urgent}, true)[1] == Approx(0.07 * i + 0.3 * i + 1));
  }
}

TEST_CASE("stages on cards of their own overlap", "[planner]") {
  const CardTransfer two{.ready_s = 0, .priority = 0, .stages = {{0, 2, 0}, {1, 2, 0}}};
  CHECK(ends_of({two, two, two}, false) == std::vector<double>{4, 6, 8});
}

TEST_CASE("periods of the three overlaps by hand", "[planner]") {
  const StepShape shape{.before_s = 1, .forward_s = 10, .backward_s = 20, .optimiser_s = 2};
  // The last layer's bucket is ready first and needed last, the first layer's the other way round; each takes 8 s.
  const std::vector<OverlapBucket> buckets = {{.ready = 0.5, .needed = 0.5, .share = 0.5, .stages = {{0, 8, 0}}},
                                              {.ready = 1, .needed = 0, .share = 0.5, .stages = {{0, 8, 0}}}};
  CHECK(period_s(shape, buckets, Waits::none, false) == Approx(20 + 16 + 1 + 1 + 10));
  CHECK(period_s(shape, buckets, Waits::buckets, false) == Approx(20 + 8 + 1 + 1 + 10));
  CHECK(period_s(shape, buckets, Waits::layers, true) == Approx(20 + 8 + 1 + 5 + 1 + 5));
  const std::vector<OverlapBucket> slow = {{.ready = 0.5, .needed = 0.5, .share = 0.5, .stages = {{0, 30, 0}}},
                                           {.ready = 1, .needed = 0, .share = 0.5, .stages = {{0, 8, 0}}}};
  // First come, first served: bucket 0 until 40, bucket 1 until 48. By priority: bucket 1 from 20 to 28, bucket 0 until
  // 48, while the first layers' forward pass goes on.
  CHECK(period_s(shape, slow, Waits::layers, false) == Approx(48 + 1 + 5 + 1 + 5));
  CHECK(period_s(shape, slow, Waits::layers, true) == Approx(48 + 1 + 5));
  CHECK(period_s(shape, {}, Waits::layers, true) == Approx(31));
  StepShape crowded = shape;  // a quarter of what could be hidden is hidden
  crowded.overlap = 0.25;
  CHECK(period_s(crowded, buckets, Waits::none, false) == Approx(48));
  CHECK(period_s(crowded, buckets, Waits::buckets, false) == Approx(0.25 * 40 + 0.75 * 48));
  CHECK(period_s(crowded, buckets, Waits::layers, true) == Approx(0.25 * 40 + 0.75 * 49));
  const std::vector<OverlapBucket> served = {{.ready = 0.5, .needed = 0, .share = 1, .stages = {{0, 4, 0}, {0, 6, 0}}}};
  CHECK(period_s(shape, served, Waits::layers, true) == Approx(20 + 1 + 2 + 10));
  CHECK(period_s(shape, served, Waits::barrier, true, 3) == Approx(20 + 3 + 6 + 2 + 10));
}

TEST_CASE("buckets that share cards end as their plans do together", "[planner]") {
  const Network network{.inside = {1e-6, 5e9}, .between = {20e-6, 1.18e9}, .add_bytes_per_s = 1e10};
  constexpr int k = 8;
  for (const std::string algorithm : {"ring", "halving_doubling", "butterfly"})
    for (const double backward_s : {0.0, 0.02, 0.1, 1.0}) {
      const std::vector<std::int64_t> elems = {2'000'000, 1'300'000, 1'000'000, 1'048'576, 400'000, 150'000};
      PlanPricer pricer(network, 1);
      std::vector<CardTransfer> transfers;
      std::vector<TimedPlans> collectives;
      for (std::size_t b = 0; b < elems.size(); ++b) {
        const double ready_s = backward_s * static_cast<double>(b + 1) / static_cast<double>(elems.size());
        const CollectiveCost cost = pricer.cost({.algorithm = algorithm, .elems = elems[b], .segment_elems = 65536}, k);
        transfers.push_back({.ready_s = ready_s,
                             .priority = 0,
                             .stages = {{.card = 0, .busy_s = cost.busy_s, .latency_s = cost.time_s - cost.busy_s}}});
        AllreduceRequest request{.ranks = k, .elems = elems[b], .segment_elems = 65536};
        TimedPlans& plans = collectives.emplace_back();
        plans.ready_s.assign(k, ready_s);
        for (request.rank = 0; request.rank < k; ++request.rank)
          plans.plans.push_back(make_allreduce(algorithm, request));
      }
      const std::vector<double> ends = ends_of(transfers, false);
      const std::vector<double> simulated =
          plan_times_s(collectives, RankPlacement{.ranks = k, .ranks_a_host = 1}.hosts_of_ranks(), network, 4);
      INFO(algorithm << ", back-propagation " << backward_s << " s");
      CHECK(*std::max_element(ends.begin(), ends.end()) ==
            Approx(*std::max_element(simulated.begin(), simulated.end())).epsilon(0.01));
    }
}
