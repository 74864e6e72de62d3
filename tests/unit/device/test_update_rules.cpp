// The rules over several steps against closed forms.
#include <catch2/catch.hpp>
#include <cmath>

#include "device/reference/reference.hpp"

using namespace echelon;

namespace {

// One weight after `steps` updates with a constant gradient.
double after(const char* rule, double w, double g, int steps, const RuleScalars& scalars, int states = 1) {
  const auto device = make_reference_device({});
  const auto update = device->make_update(rule, DType::f64);
  double state = 0;
  void* const held[] = {&state};
  for (int step = 0; step < steps; ++step) {
    RuleScalars now = scalars;
    now.step = step;
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

TEST_CASE("sgd with weight decay alone shrinks geometrically", "[update]") {
  CHECK(after("sgd", 3, 0, 5, {.learning_rate = 0.2, .weight_decay = 0.5}) ==
        Approx(3 * std::pow(1 - 0.2 * 0.5, 5)).epsilon(1e-14));
}

TEST_CASE("sgd with momentum sums a geometric series", "[update]") {
  // v_t = g (1 - m^t) / (1 - m), the first step taking g itself.
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

TEST_CASE("a running average approaches its value geometrically", "[update]") {
  CHECK(after("running_average", 10, 2, 4, {.momentum = 0.25}, 0) == Approx(2 + 8 * std::pow(0.75, 4)).epsilon(1e-14));
  CHECK(after("running_average", 10, 2, 1, {.momentum = 1.0}, 0) == 2);
}
