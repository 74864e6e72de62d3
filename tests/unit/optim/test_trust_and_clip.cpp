// SPDX-License-Identifier: Apache-2.0
// Norms over layers and over everything, and the use of the states to a resumed run.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "optim/optimiser.hpp"
#include "tests/support/allocations.hpp"
#include "tests/support/random.hpp"

using namespace echelon;

namespace {

constexpr std::size_t kElems = 41;

// The parameters are a (17) and c (19), which decay, b (3), which does not, and s (2), a statistic.
struct Bench {
  explicit Bench(const OptimiserConfig& given) : config(given), optimiser(given, arenas) {
    set(arenas.weights_at(0), test::random_values(kElems, "weights"));
  }

  void set(void* at, const std::vector<double>& values) {
    device->to_device(at, values.data(), values.size() * sizeof(double));
  }
  std::vector<double> weights() {
    std::vector<double> w(kElems);
    device->to_host(w.data(), arenas.weights_at(0), w.size() * sizeof(double));
    return w;
  }
  // Takes one update from these gradients; returns how far the weights moved.
  std::vector<double> step(std::int64_t number, const std::vector<double>& g, bool in_parts = true) {
    const std::vector<double> before = weights();
    set(arenas.gradients_at(0), g);
    optimiser.begin_step(number, config.learning_rate);
    if (optimiser.clips()) optimiser.clip(optimiser.measure({0, kElems}));
    if (in_parts) {
      optimiser.apply({17, kElems});
      optimiser.apply({0, 17});
    } else {
      optimiser.apply({0, kElems});
    }
    std::vector<double> moved = weights();
    for (std::size_t i = 0; i < kElems; ++i) moved[i] -= before[i];
    return moved;
  }
  static ParameterSet parameters() {
    ParameterSet set;
    set.add("a", Shape{17}, {});
    set.add("b", Shape{3}, {}, false);
    set.add_statistic("s", Shape{2}, {}, 0.25);
    set.add("c", Shape{19}, {});
    return set;
  }

  OptimiserConfig config;
  std::unique_ptr<Device> device = open_device("reference", {});
  Arenas arenas{*device, parameters(), DType::f64};
  Optimiser optimiser;
};

double norm(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  double squares = 0;
  for (std::size_t i = begin; i < end; ++i) squares += values[i] * values[i];
  return std::sqrt(squares);
}

OptimiserConfig rule(const std::string& name) {
  OptimiserConfig config;
  config.rule = name;
  config.learning_rate = 0.25;
  return config;
}

std::vector<double> gradients(int step) { return test::random_values(kElems, "gradient " + std::to_string(step)); }

// Copies the state that is shown, or writes the copy back.
struct Copy final : StateVisitor {
  bool loading() const override { return load; }
  void tensor(const StateTensor& tensor) override {
    std::vector<double>& kept = values[std::string(tensor.name)];
    const auto n = static_cast<std::size_t>(tensor.shape.elems());
    kept.resize(n);
    if (load)
      std::memcpy(tensor.data, kept.data(), n * sizeof(double));
    else
      std::memcpy(kept.data(), tensor.data, n * sizeof(double));
  }
  void scalar(std::string_view, std::int64_t&, Absent) override {}
  void scalar(std::string_view, double&, Absent) override {}
  std::map<std::string, std::vector<double>> values;
  bool load = false;
};

}  // namespace

TEST_CASE("lamb moves each layer by learning rate times its norm", "[optim]") {
  OptimiserConfig config = rule("lamb");
  config.weight_decay = 0.3;
  Bench bench(config);
  for (int step = 0; step < 3; ++step) {
    const std::vector<double> g = gradients(step), before = bench.weights(), moved = bench.step(step, g);
    CHECK(norm(moved, 0, 17) == Approx(0.25 * norm(before, 0, 17)).epsilon(1e-12));
    CHECK(norm(moved, 22, 41) == Approx(0.25 * norm(before, 22, 41)).epsilon(1e-12));
    // A bias takes Adam's own step, which at first is the gradient's sign.
    if (step == 0)
      for (std::size_t i = 17; i < 20; ++i) CHECK(moved[i] == Approx(-0.25 * g[i] / (std::fabs(g[i]) + 1e-8)));
  }
}

TEST_CASE("lars moves each layer by eta times its norm on the first step", "[optim]") {
  OptimiserConfig config = rule("lars");
  config.trust_coefficient = 0.02;
  Bench bench(config);
  const std::vector<double> before = bench.weights(), g = gradients(0), moved = bench.step(0, g);
  CHECK(norm(moved, 0, 17) == Approx(0.25 * 0.02 * norm(before, 0, 17)).epsilon(1e-12));
  CHECK(norm(moved, 22, 41) == Approx(0.25 * 0.02 * norm(before, 22, 41)).epsilon(1e-12));
  for (std::size_t i = 17; i < 20; ++i) CHECK(moved[i] == Approx(-0.25 * g[i]));
  for (std::size_t i = 20; i < 22; ++i) CHECK(moved[i] == Approx(0.25 * (g[i] - before[i])));
}

TEST_CASE("lars measures the clipped gradient", "[optim]") {
  OptimiserConfig config = rule("lars");
  config.trust_coefficient = 0.02;
  config.weight_decay = 0.3;
  config.clip_norm = 0.5;
  Bench bench(config);
  const std::vector<double> w = bench.weights(), g = gradients(0), moved = bench.step(0, g);
  const double all = std::hypot(norm(g, 0, 20), norm(g, 22, kElems)), factor = 0.5 / (all + 1e-6);
  REQUIRE(factor < 1);
  const double trust = 0.02 * norm(w, 0, 17) / (factor * norm(g, 0, 17) + 0.3 * norm(w, 0, 17));
  for (std::size_t i = 0; i < 17; ++i) CHECK(moved[i] == Approx(-0.25 * trust * (factor * g[i] + 0.3 * w[i])));
}

TEST_CASE("a layer of zeros, or one without gradient, takes a ratio of 1", "[optim]") {
  for (const char* name : {"lars", "lamb"}) {
    INFO(name);
    Bench zeros(rule(name));
    zeros.set(zeros.arenas.weights_at(0), std::vector<double>(kElems, 0.0));
    const std::vector<double> g = gradients(1), moved = zeros.step(0, g);
    for (std::size_t i = 0; i < 17; ++i)
      CHECK(moved[i] == Approx(std::string(name) == "lars" ? -0.25 * g[i] : -0.25 * g[i] / (std::fabs(g[i]) + 1e-8)));
    Bench still(rule(name));
    CHECK(norm(still.step(0, std::vector<double>(kElems, 0.0)), 0, 20) == 0);
  }
}

TEST_CASE("trust ratios want whole parameters", "[optim]") {
  Bench bench(rule("lars"));
  bench.optimiser.begin_step(0, 0.1);
  CHECK_THROWS_WITH(bench.optimiser.apply({0, 5}), Catch::Contains("whole parameters"));
}

TEST_CASE("the norm to clip by leaves statistics out and does not depend on ranges' order", "[optim]") {
  OptimiserConfig config = rule("sgd");
  config.momentum = 0;
  config.clip_norm = 0.5;
  Bench bench(config);
  std::vector<double> g = gradients(2);
  g[20] = 1e6;  // belongs to a statistic
  bench.set(bench.arenas.gradients_at(0), g);
  std::vector<double> weights_only = g;
  weights_only[20] = weights_only[21] = 0;
  const double length = norm(weights_only, 0, kElems);
  CHECK(bench.optimiser.measure({0, 17}) + bench.optimiser.measure({17, kElems}) == Approx(length * length));
  bench.optimiser.begin_step(0, 0.25);
  CHECK_THROWS_WITH(bench.optimiser.apply({0, kElems}), Catch::Contains("clip() was not called"));
  CHECK(bench.optimiser.clip(bench.optimiser.measure({0, kElems})) == Approx(length));
  const std::vector<double> moved = bench.step(0, g);
  for (std::size_t i = 0; i < 17; ++i) CHECK(moved[i] == Approx(-0.25 * g[i] * 0.5 / (length + 1e-6)));
  for (std::size_t i = 0; i < kElems; ++i) g[i] *= 0.01;
  const std::vector<double> small = bench.step(1, g);  // below the bound, so unchanged
  for (std::size_t i = 0; i < 17; ++i) CHECK(small[i] == Approx(-0.25 * g[i]));
  g[3] = std::nan("");
  CHECK(std::isnan(bench.step(2, g)[0]));  // NaN is never hidden
}

TEST_CASE("what a checkpoint holds of each rule carries on to the same bits", "[optim]") {
  for (const std::string& name : rule_names()) DYNAMIC_SECTION(name) {
      OptimiserConfig config = rule(name);
      config.weight_decay = 0.01;
      config.clip_norm = 3;
      Bench whole(config), second(config);
      Copy copy;
      for (int step = 0; step < 7; ++step) {
        whole.step(step, gradients(step));
        if (step != 3) continue;
        whole.arenas.visit_state(copy);
        whole.optimiser.visit_state(copy);
      }
      CHECK(copy.values.size() == 4 * (1 + find_rule(name).states.size()));
      copy.load = true;
      second.arenas.visit_state(copy);
      second.optimiser.visit_state(copy);
      for (int step = 4; step < 7; ++step) second.step(step, gradients(step), false);
      CHECK(second.weights() == whole.weights());
    }
}

TEST_CASE("an update of any rule allocates nothing", "[optim]") {
  for (const std::string& name : rule_names()) {
    INFO(name);
    OptimiserConfig config = rule(name);
    config.clip_norm = 1;
    Bench bench(config);
    const std::uint64_t before = test::allocations();
    for (int step = 0; step < 3; ++step) {
      bench.optimiser.begin_step(step, 0.1);
      bench.optimiser.clip(bench.optimiser.measure({0, kElems}));
      bench.optimiser.apply({0, kElems});
    }
    const std::uint64_t after = test::allocations();
    CHECK(after == before);
  }
}
