// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/divergence.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace echelon {
namespace {

// Returns the step after which the run is ended, or 0 where it is not.
int ends_at(const std::vector<double>& losses, double factor = 10, double first_loss = 0, std::int64_t before = 0) {
  Config config;
  config.train.divergence_factor = factor;
  RunState state;
  state.first_loss = first_loss;
  DivergenceHook hook(config, state);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    StepRecord record;
    record.step = before + static_cast<std::int64_t>(i) + 1;
    record.loss = losses[i];
    try {
      hook.step_end(record);
    } catch (const Error& error) {
      CHECK(error.code() == kExitNumeric);
      return static_cast<int>(record.step);
    }
  }
  return 0;
}

std::vector<double> then(double first, int steps, double later) {
  std::vector<double> losses(static_cast<std::size_t>(steps + 1), later);
  losses[0] = first;
  return losses;
}

}  // namespace

TEST_CASE("twenty losses far above the first end a run", "[train][divergence]") {
  CHECK(ends_at(then(2.3, 50, 250)) == 21);
  CHECK(ends_at(then(2.3, 50, 22)) == 0);
  CHECK(ends_at(then(2.3, 50, 22), 5) == 21);
  CHECK(ends_at(then(2.3, 50, 250), 0) == 0);  // switched off
}

TEST_CASE("spikes, large losses and paced runs do not count as divergence", "[train][divergence]") {
  std::vector<double> spikes = then(2.3, 200, 1.5);
  for (std::size_t i = 10; i < spikes.size(); i += 20)
    for (std::size_t j = 0; j < 19 && i + j < spikes.size(); ++j) spikes[i + j] = 500;
  CHECK(ends_at(spikes) == 0);
  CHECK(ends_at(then(1e-3, 100, 5)) == 0);                     // the first batch happened to fit
  CHECK(ends_at(then(1e6, 100, 2e6)) == 0);                    // the losses are squared errors of large numbers
  CHECK(ends_at(then(std::nan(""), 100, std::nan(""))) == 0);  // a paced run
}

TEST_CASE("where ranks do not meet in every step each counts its own", "[train][divergence]") {
  Config config;
  RunState state;
  DivergenceHook hook(config, state, false);
  StepRecord mean;  // a meeting in which one of many replicas has diverged
  mean.loss = 2.2;
  for (int step = 1; step < 21; ++step) {
    CHECK(hook.diverges({.loss = step == 1 ? 2.3 * 8 : 250 * 8, .weight = 8}, step) == 0);
    hook.step_end(mean);
  }
  CHECK(hook.diverges({.loss = 0, .weight = 0}, 21) == 0);  // the step has no samples
  CHECK(hook.diverges({.loss = 250 * 8, .weight = 8}, 22) == Approx(250));
  CHECK(state.first_loss == Approx(2.3));
  CHECK_THAT(diverged_text(250, 3, config), Catch::Contains("the loss of rank 3 is 250"));
}

TEST_CASE("a resumed run keeps the limit of its first step", "[train][divergence]") {
  CHECK(ends_at(then(250, 30, 250), 10, 2.3, 1000) == 1020);
  CHECK(ends_at(then(250, 30, 250), 10, 100, 1000) == 0);
}

TEST_CASE("a loss that is no number at the first step is not blamed on the rate", "[train][divergence]") {
  const Config config;
  CHECK_THAT(not_finite_text(std::nan(""), 1, 2, config), Catch::Contains("not a number at step 1 on rank 2") &&
                                                              Catch::Contains("data.train") &&
                                                              !Catch::Contains("lower"));
  CHECK_THAT(not_finite_text(std::numeric_limits<double>::infinity(), 7, 0, config),
             Catch::Contains("infinite at step 7 on rank 0") && Catch::Contains("lower optimizer.learning_rate"));
}

}  // namespace echelon
