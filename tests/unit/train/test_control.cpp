// SPDX-License-Identifier: Apache-2.0
// The control words of a step: sums, wishes and times over any number of ranks, on virtual time and on an engine.
#include <catch2/catch.hpp>
#include <cmath>

#include "base/check.hpp"
#include "comm/group.hpp"
#include "comm/virtual/world.hpp"
#include "tests/support/protocol_world.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tree_sum.hpp"
#include "train/control/control.hpp"

namespace echelon {
namespace {

constexpr int kSteps = 4;

// Makes a rank's words; a third of the ranks measures nothing, as servers do.
ControlWords words_of(int rank, int step) {
  const auto values = test::random_values(3, "words " + std::to_string(rank) + " " + std::to_string(step));
  ControlWords words;
  words.loss = values[0], words.weight = 2 + values[1];
  if (rank % 3 != 2) words.last.compute_s = 2 + values[2];
  words.checkpoint = rank == 3 && step == 1;
  words.requeue = rank == 1 && step == 2;
  return words;
}

void check_sum(const ControlSum& sum, int k, int step) {
  std::vector<double> losses, weights;
  double fastest = 1e9, slowest = -1;
  for (int r = 0; r < k; ++r) {
    const ControlWords words = words_of(r, step);
    losses.push_back(words.loss);
    weights.push_back(words.weight);
    if (words.last.compute_s < 0) continue;
    fastest = std::min(fastest, words.last.compute_s);
    slowest = std::max(slowest, words.last.compute_s);
  }
  ECHELON_CHECK_EQ(sum.loss, test::sum_in_tree(losses), "the bits of the tree, {} ranks", k);
  ECHELON_CHECK_EQ(sum.weight, test::sum_in_tree(weights));
  ECHELON_CHECK_EQ(sum.arrival_skew_s(), slowest - fastest);
  ECHELON_CHECK_EQ(words_of(static_cast<int>(sum.slowest_rank), step).last.compute_s, slowest);
  ECHELON_CHECK_EQ(sum.checkpoint(), k > 3 && step == 1);
  ECHELON_CHECK_EQ(sum.requeue(), k > 1 && step == 2);
  ECHELON_CHECK(!sum.interrupt() && sum.not_finite_rank < 0);
}

void check_times(const std::vector<RankStep>& times, int k, int step) {
  ECHELON_CHECK_EQ(times.size(), static_cast<std::size_t>(k));
  for (int r = 0; r < k; ++r)
    ECHELON_CHECK_EQ(times[static_cast<std::size_t>(r)].compute_s, words_of(r, step).last.compute_s);
}

// A rank whose steps take different times.
struct Rank final : ProtocolHost {
  Rank(std::uint64_t seed, int at, VirtualWorld& world)
      : rank(at), ranks(world.ranks()), tree(at, ranks, 5, 2), random(seed, "control") {
    actor.emplace(
        world.transport(rank), tree, *this, [this] { return step == kSteps; }, 2);
    begin();
  }
  void begin() {
    const double pause_s =
        100e-6 * random.at(static_cast<std::uint64_t>(rank)).uniform(static_cast<std::uint64_t>(step));
    actor->at(actor->now_s() + pause_s, [this] {
      tree.set_words(words_of(rank, step));
      actor->post(ControlTree::kWords);
    });
  }
  void on_notified(Token, double) override {
    check_sum(tree.sum(), ranks, step);
    if (rank == 0 && step % 2 == 0) check_times(tree.times(), ranks, step);
    if (rank > 0 || step % 2 == 1) ECHELON_CHECK(tree.times().empty());
    if (++step < kSteps) begin();
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  int rank, ranks, step = 0;
  ControlTree tree;
  HashRng random;
  std::optional<test::ProtocolActor> actor;
};

}  // namespace

TEST_CASE("control words: every number of ranks, any schedule", "[train][control]") {
  for (int k = 1; k <= 17; ++k) {
    VirtualNetwork network{.between_hosts = {.jitter = 2}};
    network.seed = test::test_seed() + static_cast<std::uint64_t>(k);
    network.eager_bytes = k % 2 == 0 ? 0 : 1 << 20;
    CAPTURE(k, network.seed);
    const test::ProtocolRun<Rank> run(k, network, network.seed);
    std::uint64_t messages = 0;
    for (const auto& rank : run.ranks()) messages += rank->actor->wire().messages_sent;
    CHECK(messages == static_cast<std::uint64_t>(2 * (k - 1) * kSteps));
  }
}

TEST_CASE("control words on an engine, a loss that is not finite named by its lowest rank", "[train][control]") {
  for (int k = 1; k <= 5; ++k)
    CHECK_NOTHROW(test::run_ranks(k, [k](std::unique_ptr<Transport> transport) {
      Engine engine(std::move(transport));
      Control control(engine, 7);
      for (int step = 0; step < kSteps; ++step) {
        control.add(words_of(engine.rank(), step), true);
        check_sum(control.meet(), k, step);
        if (engine.rank() == 0) check_times(control.times(), k, step);
      }
      ControlWords words;
      words.loss = engine.rank() >= 1 ? std::nan("") : 1.0;
      control.add(words, true);
      const ControlSum sum = control.meet();
      ECHELON_CHECK_EQ(sum.not_finite_rank, k > 1 ? 1.0 : -1.0);
      ECHELON_CHECK_EQ(std::isnan(sum.not_finite_loss), k > 1);
    }));
}

TEST_CASE("a rank that ends right after a meeting withholds no sum from the others", "[train][control]") {
  const EngineOptions one_send{.sends = 1};  // the other messages down the tree are queued when rank 0 has its sum
  for (int run = 0; run < 50; ++run)
    REQUIRE_NOTHROW(test::run_ranks(
        8,
        [&](std::unique_ptr<Transport> transport) {
          Engine engine(std::move(transport), one_send);
          {
            Control control(engine, 1);
            control.add(words_of(engine.rank(), 0), true);
            check_sum(control.meet(), 8, 0);
            control.flush();
          }
          Group(engine, 0).barrier();
        },
        10));
}

TEST_CASE("a meeting that no step comes before has the steps of the last one", "[train][control]") {
  REQUIRE_NOTHROW(test::run_ranks(3, [](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    Control control(engine, 1, {.meets = Progress::Meets::when_called});
    control.add({.weight = 1, .step = 7.0 + engine.rank(), .drift = 0.5, .requeue = true}, false);
    ECHELON_CHECK_EQ(control.meet().most_steps, 9);
    const ControlSum& again = control.meet();
    ECHELON_CHECK_EQ(again.most_steps, 9);
    ECHELON_CHECK(again.weight == 0 && again.largest_drift < 0 && !again.requeue(), "what was told is told twice");
    Group(engine, 0).barrier();
  }));
}

}  // namespace echelon
