// SPDX-License-Identifier: Apache-2.0
// Update rules over several steps, compared with closed forms.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/hash_rng.hpp"
#include "device/reference/reference.hpp"
#include "tests/support/random.hpp"

using namespace echelon;

namespace {

// Returns a weight after `steps` updates with a constant gradient.
double after(const char* rule, double w, double g, int steps, const RuleScalars& scalars, int states = 1) {
  const auto device = make_reference_device({});
  const auto update = device->make_update(rule, DType::f64);
  double values[3] = {};
  void* const held[] = {values, values + 1, values + 2};
  for (int step = 0; step < steps; ++step) {
    RuleScalars now = scalars;
    now.step = step;
    now.unbias1 = 1 / (1 - std::pow(scalars.beta1, step + 1));
    now.unbias2 = 1 / std::sqrt(1 - std::pow(scalars.beta2, step + 1));
    update->apply(&w, &g, std::span<void* const>(held, static_cast<std::size_t>(states)), 1, now);
  }
  return w;
}

}  // namespace

TEST_CASE("sgd without momentum walks a straight line", "[update]") {
  CHECK(after("sgd", 2, 0.5, 6, {.learning_rate = 0.1}) == Approx(2 - 6 * 0.1 * 0.5).epsilon(1e-14));
  CHECK(after("sgd", 2, 0.5, 6, {.learning_rate = 0.1, .trust = 0.5, .clip = 0.25}) ==
        Approx(2 - 6 * 0.1 * 0.5 * 0.5 * 0.25).epsilon(1e-14));
}

TEST_CASE("plain sgd, which keeps no velocity, has the bits of sgd with momentum 0", "[update]") {
  const auto device = make_reference_device({});
  const HashRng draws(test::test_seed(), "plain");
  const auto check = [&]<class T>(T, DType dtype) {
    constexpr std::size_t kElems = 1000;
    std::vector<T> with(kElems), without(kElems), velocity(kElems), gradient(kElems);
    for (std::size_t i = 0; i < kElems; ++i) with[i] = without[i] = static_cast<T>(hash_normal(draws, i));
    const auto sgd = device->make_update("sgd", dtype), plain = device->make_update("plain_sgd", dtype);
    for (std::uint64_t step = 0; step < 5; ++step) {
      for (std::size_t i = 0; i < kElems; ++i) gradient[i] = static_cast<T>(hash_normal(draws.at(step), i));
      const RuleScalars scalars{.learning_rate = 0.1, .weight_decay = 0.01, .trust = 0.9, .clip = 0.7};
      void* const held[] = {velocity.data()};
      sgd->apply(with.data(), gradient.data(), held, kElems, scalars);
      plain->apply(without.data(), gradient.data(), {}, kElems, scalars);
    }
    CHECK(std::memcmp(with.data(), without.data(), kElems * sizeof(T)) == 0);
  };
  check(0.0, DType::f64);
  check(0.0F, DType::f32);
}

TEST_CASE("sgd with weight decay alone shrinks geometrically", "[update]") {
  CHECK(after("sgd", 3, 0, 5, {.learning_rate = 0.2, .weight_decay = 0.5}) ==
        Approx(3 * std::pow(1 - 0.2 * 0.5, 5)).epsilon(1e-14));
}

TEST_CASE("sgd with momentum sums a geometric series", "[update]") {
  // v_t = g (1 - m^t) / (1 - m), because the first step takes g itself.
  const double m = 0.9, g = 0.5, lr = 0.1;
  double w = 2, nesterov = 2;
  for (int t = 1; t <= 7; ++t) {
    const double v = g * (1 - std::pow(m, t)) / (1 - m);
    w -= lr * v;
    nesterov -= lr * (g + m * v);
  }
  CHECK(after("sgd", 2, g, 7, {.learning_rate = lr, .momentum = m}) == Approx(w).epsilon(1e-13));
  CHECK(after("sgd", 2, g, 7, {.learning_rate = lr, .momentum = m, .nesterov = true}) ==
        Approx(nesterov).epsilon(1e-13));
}

TEST_CASE("adam walks by the sign of a constant gradient", "[update]") {
  // m^ = g and v^ = g^2 at every step.
  const RuleScalars scalars{.learning_rate = 0.1, .epsilon = 0.125};
  CHECK(after("adam", 2, -0.5, 6, scalars, 2) == Approx(2 + 6 * 0.1 * 0.5 / 0.625).epsilon(1e-13));
  CHECK(after("adamw", 2, -0.5, 6, scalars, 2) == Approx(2 + 6 * 0.1 * 0.5 / 0.625).epsilon(1e-13));
}

TEST_CASE("adamw without a gradient shrinks geometrically, adam by its sign", "[update]") {
  const RuleScalars scalars{.learning_rate = 0.2, .weight_decay = 0.5, .epsilon = 1e-12};
  CHECK(after("adamw", 3, 0, 5, scalars, 2) == Approx(3 * std::pow(1 - 0.2 * 0.5, 5)).epsilon(1e-13));
  CHECK(after("adam", 3, 0, 1, scalars, 2) == Approx(3 - 0.2).epsilon(1e-10));
}

TEST_CASE("rmsprop divides a constant gradient by the root of its filling average", "[update]") {
  // v_t = g^2 (1 - a^t)
  const double a = 0.75, g = 0.5, lr = 0.1;
  double w = 2;
  for (int t = 1; t <= 6; ++t) w -= lr / std::sqrt(1 - std::pow(a, t));
  CHECK(after("rmsprop", 2, g, 6, {.learning_rate = lr, .beta2 = a, .epsilon = 0}, 2) == Approx(w).epsilon(1e-13));
}

TEST_CASE("lars keeps the rate inside its velocity", "[update]") {
  const double m = 0.5, g = 0.25;
  double w = 2;
  for (int t = 1; t <= 5; ++t) w -= 0.1 * 0.75 * g * (1 - std::pow(m, t)) / (1 - m);
  CHECK(after("lars", 2, g, 5, {.learning_rate = 0.1, .momentum = m, .trust = 0.75}) == Approx(w).epsilon(1e-13));
}

TEST_CASE("the lamb rule changes no weight itself, the descend rule does", "[update]") {
  CHECK(after("lamb", 2, 0.5, 3, {.learning_rate = 0.1}, 3) == 2);
  CHECK(after("descend", 2, 0.5, 3, {.learning_rate = 0.1, .trust = 0.5}, 0) == Approx(2 - 3 * 0.1 * 0.5 * 0.5));
}

TEST_CASE("a running average approaches its value geometrically", "[update]") {
  CHECK(after("running_average", 10, 2, 4, {.momentum = 0.25}, 0) == Approx(2 + 8 * std::pow(0.75, 4)).epsilon(1e-14));
  CHECK(after("running_average", 10, 2, 1, {.momentum = 1.0}, 0) == 2);
}
