// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "optim/optimiser.hpp"

using namespace echelon;

namespace {

// The parameters are a (2, decays), b (1), s (1, statistic), c (2, decays).
struct Bench {
  explicit Bench(const OptimiserConfig& config) : optimiser(config, arenas) {}

  void set(const std::vector<double>& w, const std::vector<double>& g) {
    device->to_device(arenas.weights_at(0), w.data(), w.size() * sizeof(double));
    device->to_device(arenas.gradients_at(0), g.data(), g.size() * sizeof(double));
  }
  std::vector<double> weights() const {
    std::vector<double> w(6);
    device->to_host(w.data(), arenas.weights_at(0), w.size() * sizeof(double));
    return w;
  }
  static ParameterSet parameters() {
    ParameterSet set;
    const Init zero;
    set.add("a", Shape{2}, zero);
    set.add("b", Shape{1}, zero, false);
    set.add_statistic("s", Shape{1}, zero, 0.25);
    set.add("c", Shape{2}, zero);
    return set;
  }

  std::unique_ptr<Device> device = open_device("reference", {});
  Arenas arenas{*device, parameters(), DType::f64};
  Optimiser optimiser;
};

void check_close(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("element " << i);
    CHECK(found[i] == Approx(expected[i]).margin(1e-15));
  }
}

// The parameters are a sparse table (5, 2) and a dense b (1).
struct TableBench {
  explicit TableBench(const OptimiserConfig& config) : optimiser(config, arenas) { arenas.track_rows(true); }

  static ParameterSet parameters() {
    ParameterSet set;
    Parameter table;
    table.name = "table", table.shape = table.global_shape = Shape{5, 2}, table.offset = Shape{0, 0};
    table.sparse = true;
    set.add(table);
    set.add("b", Shape{1}, {}, false);
    return set;
  }
  // Updates weights of 1 with gradients of 2 in the marked rows 1 and 4 and in b. If `stale`, the other rows hold 3: an
  // update by rows must not see them.
  std::vector<double> step(bool stale) {
    auto* w = static_cast<double*>(arenas.weights_at(0));
    auto* g = static_cast<double*>(arenas.gradients_at(0));
    std::fill_n(w, 11, 1.0);
    std::fill_n(g, 10, stale ? 3.0 : 0.0);
    g[2] = g[3] = g[8] = g[9] = g[10] = 2;
    arenas.row_marks(0).words[0] = 1U << 1 | 1U << 4;
    optimiser.begin_step(0, 0.5);
    if (optimiser.clips()) optimiser.clip(optimiser.measure({0, 11}));
    optimiser.apply({0, 11});
    return {w, w + 11};
  }

  std::unique_ptr<Device> device = open_device("reference", {});
  Arenas arenas{*device, parameters(), DType::f64};
  Optimiser optimiser;
};

}  // namespace

TEST_CASE("sparse tables: plain sgd applies marked rows alone, every other rule the whole table", "[optim]") {
  OptimiserConfig config;
  config.momentum = 0;
  check_close(TableBench(config).step(true), {1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0});
  config.weight_decay = 0.1;
  check_close(TableBench(config).step(false), {.95, .95, -.05, -.05, .95, .95, .95, .95, -.05, -.05, 0});
  config.lazy = true;
  check_close(TableBench(config).step(true), {1, 1, -.05, -.05, 1, 1, 1, 1, -.05, -.05, 0});
  config.lazy = false, config.weight_decay = 0, config.momentum = 0.5;
  check_close(TableBench(config).step(true), {-.5, -.5, 0, 0, -.5, -.5, -.5, -.5, 0, 0, 0});
  config.momentum = 0, config.clip_norm = 1;  // the norm covers all rows, of which only marked ones are not 0
  const double cut = 1 - 0.5 * 2 / (std::sqrt(20.0) + 1e-6);
  check_close(TableBench(config).step(false), {1, 1, cut, cut, 1, 1, 1, 1, cut, cut, cut});
}

TEST_CASE("lazy moments stand still in rows that are not touched", "[optim]") {
  for (const char* rule : {"adam", "adamw", "rmsprop"}) {
    OptimiserConfig config;
    config.rule = rule;
    config.lazy = true;
    TableBench bench(config);
    const std::vector<double> w = bench.step(true);
    CHECK(w[0] == 1);
    CHECK(w[2] < 0.6);
    CHECK(w[2] == w[9]);
    CHECK(w[2] == w[10]);
  }
}

TEST_CASE("sgd with momentum follows the geometric sum", "[optim]") {
  OptimiserConfig config;
  config.momentum = 0.5;
  Bench bench(config);
  bench.set(std::vector<double>(6, 1.0), std::vector<double>(6, 2.0));
  double velocity = 0, w = 1;
  for (int step = 0; step < 5; ++step) {
    bench.optimiser.begin_step(step, 0.1);
    bench.optimiser.apply({0, 6});
    velocity = 2 * 2.0 * (1 - std::pow(0.5, step + 1));  // g (1 - m^n) / (1 - m)
    w -= 0.1 * velocity;
    const double s = 2 - std::pow(0.75, step + 1);  // moves from 1 towards 2
    check_close(bench.weights(), {w, w, w, s, w, w});
  }
}

TEST_CASE("weight decay spares what does not decay; nesterov looks ahead", "[optim]") {
  OptimiserConfig config;
  config.momentum = 0.5;
  config.weight_decay = 0.1;
  config.nesterov = true;
  Bench bench(config);
  bench.set({1, 2, 3, 4, 5, 6}, {1, 1, 1, 1, 1, 1});
  bench.optimiser.begin_step(0, 1.0);
  bench.optimiser.apply({0, 6});
  const auto decayed = [](double w) { return w - 1.5 * (1 + 0.1 * w); };
  check_close(bench.weights(), {decayed(1), decayed(2), 3 - 1.5, 4 + 0.25 * (1 - 4), decayed(5), decayed(6)});
}

TEST_CASE("ranges apply apart and give the same as the whole", "[optim]") {
  OptimiserConfig config;
  config.weight_decay = 0.01;
  Bench whole(config), parts(config);
  for (Bench* bench : {&whole, &parts}) bench->set({1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1});
  for (int step = 0; step < 3; ++step) {
    const auto version = whole.arenas.version();
    whole.optimiser.begin_step(step, 0.1);
    whole.optimiser.apply({0, 6});
    CHECK(whole.arenas.version() > version);
    parts.optimiser.begin_step(step, 0.1);
    for (ArenaRange range : {ArenaRange{3, 5}, ArenaRange{5, 6}, ArenaRange{0, 3}}) parts.optimiser.apply(range);
  }
  CHECK(whole.weights() == parts.weights());
}

TEST_CASE("the state is one arena by the name of momentum", "[optim]") {
  Bench bench({});
  CHECK(bench.optimiser.states() == 1);
  CHECK(bench.optimiser.state_bytes() == 6 * sizeof(double));
  struct Names : StateVisitor {
    bool loading() const override { return false; }
    void tensor(const StateTensor& tensor) override { names.emplace_back(tensor.name); }
    void scalar(std::string_view, std::int64_t&, Absent) override {}
    void scalar(std::string_view, double&, Absent) override {}
    std::vector<std::string> names;
  } visitor;
  bench.optimiser.visit_state(visitor);
  REQUIRE(visitor.names.size() == 4);
  CHECK(visitor.names.front() == "optimiser/momentum/a");
}

TEST_CASE("plain sgd holds no state, and takes the steps of sgd", "[optim]") {
  OptimiserConfig config;
  config.momentum = 0;
  config.weight_decay = 0.1;
  Bench bench(config);
  CHECK(bench.optimiser.states() == 0);
  CHECK(bench.optimiser.state_bytes() == 0);
  struct Counter : StateVisitor {
    bool loading() const override { return false; }
    void tensor(const StateTensor&) override { ++tensors; }
    void scalar(std::string_view, std::int64_t&, Absent) override {}
    void scalar(std::string_view, double&, Absent) override {}
    int tensors = 0;
  } visitor;
  bench.optimiser.visit_state(visitor);
  CHECK(visitor.tensors == 0);
  bench.set({1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1});
  bench.optimiser.begin_step(0, 0.5);
  bench.optimiser.apply({0, 6});
  check_close(bench.weights(),
              {1 - 0.5 * 6.1, 2 - 0.5 * 5.2, 3 - 0.5 * 4, 4 - 0.25 * (4 - 3), 5 - 0.5 * 2.5, 6 - 0.5 * 1.6});
  config.rule = "rmsprop", config.weight_decay = 0;
  CHECK(Bench(config).optimiser.states() == 2);
}

TEST_CASE("moments that begin at zero in the middle of a run are made up for from there", "[optim]") {
  for (const char* rule : {"adam", "adamw", "lamb"}) {
    INFO(rule);
    OptimiserConfig config;
    config.rule = rule;
    Bench first(config), later(config), forgotten(config);
    constexpr std::int64_t kBefore = 1000;  // updates made by another rule
    later.optimiser.begin_states(kBefore);
    for (Bench* bench : {&first, &later, &forgotten}) bench->set({1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1});
    for (int step = 0; step < 3; ++step)
      for (Bench* bench : {&first, &later, &forgotten}) {
        bench->optimiser.begin_step(bench == &first ? step : kBefore + step, 0.1);
        bench->optimiser.apply({0, 6});
      }
    CHECK(later.weights() == first.weights());
    CHECK(forgotten.weights() != first.weights());
    struct Begin : StateVisitor {
      bool loading() const override { return false; }
      void tensor(const StateTensor&) override {}
      void scalar(std::string_view name, std::int64_t& value, Absent) override {
        if (name == "moments_begin") begin = value;
      }
      void scalar(std::string_view, double&, Absent) override {}
      std::int64_t begin = -1;
    } saved;
    later.optimiser.visit_state(saved);
    CHECK(saved.begin == kBefore);
  }
}

TEST_CASE("rules share moments, and momentum with nobody", "[optim]") {
  const auto share = [](const char* a, const char* b) { return shares_states(find_rule(a), find_rule(b)); };
  for (const std::string& rule : rule_names()) CHECK(share(rule.c_str(), rule.c_str()));
  CHECK(share("adam", "lamb"));
  CHECK(share("adamw", "adam"));
  for (const char* other : {"lars", "rmsprop", "adam"}) CHECK_FALSE(share("sgd", other));
}

TEST_CASE("an unknown rule names the nearest", "[optim]") {
  OptimiserConfig config;
  config.rule = "sdg";
  CHECK_THROWS_WITH(Bench(config), Catch::Contains("did you mean 'sgd'"));
}
