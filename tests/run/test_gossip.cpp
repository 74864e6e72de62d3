// SPDX-License-Identifier: Apache-2.0
// Gossip and Adasum as a user runs them: trained on real ranks, recorded, saved, and resumed to the same bits.
#include <catch2/catch.hpp>

#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Contains;

std::vector<double> values(const test::Trial& trial) {
  return test::checkpoint_values(trial.run() + "/checkpoints/step-00000051.h5", "");
}

void run_training(const test::Trial& trial, const test::Sets& sets, const std::string& says) {
  const test::Outcome run = trial.train(3, sets);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, Contains(says));
}

// Trains in one attempt, and again in two, the first of which ends at a meeting.
void check_resumes(const test::Trial& whole, test::Sets sets, const std::string& says) {
  run_training(whole, sets, says);
  const auto summary = whole.summary();
  CHECK(summary["test_accuracy"].get<double>() > 0.85);
  CHECK(summary["wire_bytes_per_step"].get<double>() ==
        Approx(summary["formula_bytes_per_step"].get<double>()).epsilon(1e-12));
  const test::Trial cut;
  sets.push_back("train.steps=20");
  run_training(cut, sets, says);
  sets.pop_back();
  run_training(cut, sets, "from step 20:");
  CHECK(values(cut) == values(whole));
}

TEST_CASE("3 ranks gossip, record how far they are apart, and resume to the same bits", "[run]") {
  const std::string topology = GENERATE(as<std::string>(), "exponential", "random");
  const std::string order = GENERATE(as<std::string>(), "mix_after", "mix_before");
  const test::Trial whole;
  check_resumes(whole,
                {"exchange.strategy=gossip", "exchange.gossip.topology=" + topology, "exchange.gossip.order=" + order,
                 "exchange.gossip.consensus_every=10", "exchange.bucket_mb=0.01"},
                "gossip over 3 replicas, push-sum");
  int meetings = 0;
  for (const auto& row : whole.metrics())
    if (row.contains("drift") && row["drift"].is_number()) {
      ++meetings;
      CHECK(row["drift"].get<double>() > 1e-6);
      CHECK(row["drift"].get<double>() < 0.5);
    }
  CHECK(meetings == 8);  // after steps 10, 17, 20, 30, 34, 40, 50 and 51
}

TEST_CASE("3 ranks reduce gradients by Adasum and resume to the same bits", "[run]") {
  check_resumes(test::Trial(), {"exchange.reduction=adasum", "exchange.bucket_mb=0.01"}, "Adasum along a butterfly");
}

}  // namespace
}  // namespace echelon
