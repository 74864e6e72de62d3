// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

#include "base/error.hpp"
#include "optim/schedule.hpp"

using namespace echelon;

namespace {

OptimiserConfig config_of(const std::string& schedule) {
  OptimiserConfig config;
  config.schedule = schedule;
  config.learning_rate = 0.8;
  return config;
}

}  // namespace

TEST_CASE("a constant rate, after a linear warm-up", "[optim]") {
  OptimiserConfig config = config_of("constant");
  for (std::int64_t step : {0, 1, 99}) CHECK(learning_rate_at(config, step, 10, 100) == 0.8);
  config.warmup_epochs = 0.4;  // 4 of 10 steps
  const double expected[] = {0.2, 0.4, 0.6, 0.8, 0.8, 0.8};
  for (std::int64_t step = 0; step < 6; ++step)
    CHECK(learning_rate_at(config, step, 10, 100) == Approx(expected[step]));
}

TEST_CASE("steps multiply at the epochs named", "[optim]") {
  OptimiserConfig config = config_of("step");
  config.decay_at_epochs = {2, 3.5};
  config.decay_factor = 0.5;
  CHECK(learning_rate_at(config, 19, 10, 100) == 0.8);
  CHECK(learning_rate_at(config, 20, 10, 100) == 0.4);
  CHECK(learning_rate_at(config, 34, 10, 100) == 0.4);
  CHECK(learning_rate_at(config, 35, 10, 100) == 0.2);
  CHECK(learning_rate_at(config, 99, 10, 100) == 0.2);
}

TEST_CASE("cosine schedule from the end of the warm-up to its final factor", "[optim]") {
  OptimiserConfig config = config_of("cosine");
  config.warmup_epochs = 2;
  config.final_factor = 0.25;
  CHECK(learning_rate_at(config, 9, 10, 100) == Approx(0.4));
  CHECK(learning_rate_at(config, 20, 10, 100) == Approx(0.8));
  CHECK(learning_rate_at(config, 60, 10, 100) == Approx(0.8 * (0.25 + 0.75 * 0.5)));
  CHECK(learning_rate_at(config, 40, 10, 100) ==
        Approx(0.8 * (0.25 + 0.75 * 0.5 * (1 + std::cos(std::numbers::pi / 4)))));
  CHECK(learning_rate_at(config, 100, 10, 100) == Approx(0.2));
  CHECK(learning_rate_at(config, 120, 10, 100) == Approx(0.2));
  config.schedule_epochs = 10;  // independent of the run's length
  CHECK(learning_rate_at(config, 60, 10, 70) == Approx(0.8 * (0.25 + 0.75 * 0.5)));
}

TEST_CASE("polynomial schedule from the end of the warm-up to its final factor", "[optim]") {
  OptimiserConfig config = config_of("polynomial");
  config.warmup_epochs = 2;
  config.final_factor = 0.25;
  config.power = 2;
  CHECK(learning_rate_at(config, 9, 10, 100) == Approx(0.4));
  CHECK(learning_rate_at(config, 20, 10, 100) == Approx(0.8));
  CHECK(learning_rate_at(config, 40, 10, 100) == Approx(0.8 * (0.25 + 0.75 * 0.75 * 0.75)));
  CHECK(learning_rate_at(config, 100, 10, 100) == Approx(0.2));
  CHECK(learning_rate_at(config, 120, 10, 100) == Approx(0.2));
  config.power = 1;
  config.final_factor = 0;
  CHECK(learning_rate_at(config, 80, 10, 100) == Approx(0.2));
}

TEST_CASE("factors hold from point to point, or lie on straight lines between points", "[optim]") {
  OptimiserConfig config = config_of("piecewise_constant");
  config.points = {0, 2, 3.5};
  config.factors = {0.5, 1, 0.1};
  const auto rate = [&](std::int64_t step) { return learning_rate_at(config, step, 10, 100); };
  for (const auto& [step, factor] : {std::pair(0, 0.5), {19, 0.5}, {20, 1.0}, {34, 1.0}, {35, 0.1}, {500, 0.1}})
    CHECK(rate(step) == Approx(0.8 * factor));
  config.schedule = "piecewise_linear";
  for (const auto& [step, factor] : {std::pair(0, 0.5), {5, 0.625}, {20, 1.0}, {29, 0.46}, {35, 0.1}, {500, 0.1}})
    CHECK(rate(step) == Approx(0.8 * factor));
  config.points_in = PointsIn::steps;
  CHECK(rate(1) == Approx(0.8 * 0.75));
  CHECK(rate(3) == Approx(0.8 * 0.4));
}

// The published formula: phases end at pct_start * total - 1 and total - 1; torch.optim.lr_scheduler.OneCycleLR.
TEST_CASE("one cycle has the rates of PyTorch's OneCycleLR", "[optim]") {
  OptimiserConfig config = config_of("one_cycle");
  const double div_factor = 25, final_div_factor = 1e4, pct_start = GENERATE(0.3, 0.45);
  const std::int64_t total = GENERATE(10, 37, 100);
  config.anneal = GENERATE("cosine", "linear");
  CAPTURE(pct_start, total, config.anneal);
  config.rise = pct_start;
  config.first_factor = 1 / div_factor;
  config.final_factor = 1 / div_factor / final_div_factor;
  const double initial = 0.8 / div_factor, least = initial / final_div_factor;
  const double first_end = pct_start * static_cast<double>(total) - 1, last_end = static_cast<double>(total) - 1;
  for (std::int64_t step = 0; step < total; ++step) {
    const auto now = static_cast<double>(step);
    const bool first = now <= first_end;
    const double start = first ? initial : 0.8, end = first ? 0.8 : least;
    const double part = first ? now / first_end : (now - first_end) / (last_end - first_end);
    const double expected = config.anneal == "linear"
                                ? (end - start) * part + start
                                : end + (start - end) / 2 * (1 + std::cos(std::numbers::pi * part));
    CHECK(learning_rate_at(config, step, 10, total) == Approx(expected).epsilon(1e-12).margin(1e-15));
  }
}

TEST_CASE("the rate grows with the batch, or with its root", "[optim]") {
  OptimiserConfig config;
  CHECK(scaling_factor(config, 4096) == 1);
  config.base_batch = 256;
  config.scaling = "linear";
  CHECK(scaling_factor(config, 1024) == 4);
  CHECK(scaling_factor(config, 128) == 0.5);
  config.scaling = "sqrt";
  CHECK(scaling_factor(config, 1024) == 2);
  config.scaling = "sqr";
  CHECK_THROWS_WITH(scaling_factor(config, 1024), Catch::Contains("did you mean 'sqrt'"));
}

TEST_CASE("an unknown schedule names the nearest", "[optim]") {
  CHECK_THROWS_WITH(learning_rate_at(config_of("cosin"), 0, 1, 1), Catch::Contains("did you mean 'cosine'"));
}
