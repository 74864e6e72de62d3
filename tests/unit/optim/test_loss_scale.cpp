// SPDX-License-Identifier: Apache-2.0
// Scaled losses: the rule of the scale; scaling and unscaling must change nothing else.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "optim/optimiser.hpp"
#include "tests/support/random.hpp"
#include "tests/support/replicas.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

constexpr std::size_t kElems = 12;

struct Bench {
  Bench(const OptimiserConfig& config, const LossScaling& scaling) : optimiser(config, arenas, scaling) {
    set(arenas.weights_at(0), random_values(kElems, "weights"));
  }
  void set(void* at, const std::vector<double>& values) {
    device->to_device(at, values.data(), values.size() * sizeof(double));
  }
  std::vector<double> weights() {
    std::vector<double> w(kElems);
    device->to_host(w.data(), arenas.weights_at(0), w.size() * sizeof(double));
    return w;
  }
  // Takes one update as a strategy does. The statistic at the end is not scaled.
  Optimiser::Verdict step(std::int64_t number, std::vector<double> g) {
    optimiser.begin_step(number, 0.125);
    for (std::size_t i = 0; i < kElems - 2; ++i) g[i] *= optimiser.loss_scale();
    set(arenas.gradients_at(0), g);
    const Optimiser::Verdict verdict = optimiser.accept();
    if (verdict != Optimiser::Verdict::apply) return verdict;
    if (optimiser.clips()) norm = optimiser.clip(optimiser.measure({0, kElems}));
    optimiser.apply({0, kElems});
    return verdict;
  }
  static ParameterSet parameters() {
    ParameterSet set;
    set.add("a", Shape{7}, {});
    set.add("b", Shape{3}, {}, false);
    set.add_statistic("s", Shape{2}, {}, 0.25);
    return set;
  }

  std::unique_ptr<Device> device = open_device("reference", {});
  Arenas arenas{*device, parameters(), DType::f64};
  Optimiser optimiser;
  double norm = 0;
};

std::vector<double> gradients(std::int64_t step) { return random_values(kElems, "gradient " + std::to_string(step)); }
std::vector<double> broken(std::int64_t step) {
  std::vector<double> g = gradients(step);
  g[5] = step % 2 == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return g;
}

struct Scalars final : StateVisitor {
  bool loading() const override { return load; }
  void tensor(const StateTensor&) override {}
  void scalar(std::string_view name, std::int64_t& value, Absent absent) override {
    double real = static_cast<double>(value);
    scalar(name, real, absent);
    value = static_cast<std::int64_t>(real);
  }
  void scalar(std::string_view name, double& value, Absent) override {
    if (load)
      value = values.at(std::string(name));
    else
      values[std::string(name)] = value;
  }
  std::map<std::string, double> values;
  bool load = false;
};

constexpr auto kApply = Optimiser::Verdict::apply, kSkip = Optimiser::Verdict::skip,
               kGiveUp = Optimiser::Verdict::give_up;

}  // namespace

TEST_CASE("a scaled loss changes no bit of any rule, clipped or not", "[optim]") {
  for (const std::string& rule : rule_names())
    for (double clip : {0.0, 0.5}) {
      INFO(rule << " clipped to " << clip);
      OptimiserConfig config;
      config.rule = rule;
      config.weight_decay = 0.01;
      config.clip_norm = clip;
      Bench plain(config, {}), scaled(config, {.dynamic = true, .start = 4096});
      for (std::int64_t step = 0; step < 5; ++step) {
        CHECK(plain.step(step, gradients(step)) == kApply);
        CHECK(scaled.step(step, gradients(step)) == kApply);
        CHECK(scaled.norm == plain.norm);
      }
      CHECK(scaled.weights() == plain.weights());
    }
}

TEST_CASE("steps without finite gradients are skipped as if they had never been", "[optim]") {
  for (const char* rule : {"sgd", "adam", "lamb"}) {
    INFO(rule);
    OptimiserConfig config;
    config.rule = rule;
    Bench plain(config, {}), scaled(config, {.dynamic = true, .start = 64});
    std::int64_t good = 0;
    for (std::int64_t step = 0; step < 9; ++step) {
      if (step % 3 == 1) {
        const auto before = scaled.weights();
        CHECK(scaled.step(step, broken(step)) == kSkip);
        CHECK(scaled.weights() == before);
        continue;
      }
      CHECK(scaled.step(step, gradients(step)) == kApply);
      plain.step(good++, gradients(step));
    }
    CHECK(scaled.weights() == plain.weights());
    scaled.optimiser.begin_step(9, 0.125);
    CHECK(scaled.optimiser.loss_scale() == 8);
  }
}

TEST_CASE("the scale doubles after 2000 good steps, up to a most, and gives up at the least", "[optim]") {
  LossScale scale({.dynamic = true, .start = 4});
  CHECK(scale.active());
  for (int i = 0; i < 1999; ++i) REQUIRE(scale.update(true));
  CHECK(scale.update(false));
  CHECK(scale.value() == 2);
  for (int i = 0; i < 1999; ++i) REQUIRE(scale.update(true));
  CHECK(scale.value() == 2);
  CHECK(scale.update(true));
  CHECK(scale.value() == 4);
  for (int i = 0; i < 30 * 2000; ++i) REQUIRE(scale.update(true));
  CHECK(scale.value() == LossScale::kMost);
  for (double at = LossScale::kMost; at > 1; at /= 2) REQUIRE(scale.update(false));
  CHECK(scale.value() == 1);
  CHECK(!scale.update(false));
  CHECK(scale.skipped() == 26);

  OptimiserConfig config;
  Bench fixed(config, {.dynamic = false, .start = 8});
  CHECK(fixed.step(0, broken(0)) == kGiveUp);
  Bench off(config, {});
  CHECK(!off.optimiser.waits());
}

TEST_CASE("f16 scales by itself, others when told", "[optim]") {
  DeviceConfig config;
  CHECK(!LossScale(loss_scaling_of(config)).active());
  config.dtype = DType::bf16;
  CHECK(!LossScale(loss_scaling_of(config)).active());
  config.dtype = DType::f16;
  CHECK(loss_scaling_of(config).dynamic);
  CHECK(LossScale(loss_scaling_of(config)).value() == 65536);
  config.loss_scale = 128;
  CHECK(!loss_scaling_of(config).dynamic);
  CHECK(LossScale(loss_scaling_of(config)).value() == 128);
}

TEST_CASE("a resumed run goes on with the scale, its good steps and the skipped ones", "[optim]") {
  OptimiserConfig config;
  config.rule = "adam";
  Bench first(config, {.dynamic = true, .start = 64}), second(config, {.dynamic = true, .start = 64});
  for (std::int64_t step = 0; step < 6; ++step) first.step(step, step == 2 ? broken(step) : gradients(step));
  Scalars shown;
  first.optimiser.visit_state(shown);
  CHECK(shown.values ==
        std::map<std::string, double>{
            {"loss_scale", 32}, {"loss_scale_good_steps", 3}, {"skipped_steps", 1}, {"moments_begin", 0}});
  shown.load = true;
  second.optimiser.visit_state(shown);
  Scalars again;
  second.optimiser.visit_state(again);
  CHECK(again.values == shown.values);
  Scalars none;
  Bench(config, {}).optimiser.visit_state(none);
  CHECK(none.values == std::map<std::string, double>{{"moments_begin", 0}});
}

TEST_CASE("replicas agree on scaled and skipped steps, and train as one", "[optim]") {
  ReplicaRun run{.graph = small_batch_norm_net(), .shares = {4, 4}, .steps = 8};
  const ReplicaResult plain = train_replicas(run);
  run.scaling = {.dynamic = true, .start = 1024};
  CHECK(train_replicas(run).weights == plain.weights);
}

TEST_CASE("in f16 too large a scale halves until no gradient overflows, on all replicas alike", "[optim]") {
  ReplicaRun run{.graph = small_batch_norm_net(), .shares = {4, 4}, .steps = 12};
  run.device = "random_layout";
  run.dtype = DType::f32;
  run.activations = DType::f16;
  run.learning_rate = 1e-3;
  run.scaling = {.dynamic = true, .start = 0x1p24};
  const ReplicaResult both = train_replicas(run), alone = train_replicas(on_one_replica(run, true));
  CHECK(both.skipped > 3);
  CHECK(both.skipped < 10);
  CHECK(both.checksums[0] == both.checksums[1]);
  CHECK(std::abs(both.skipped - alone.skipped) <= 1);
  CHECK(tensor_distance(run.graph.parameters(), both.weights, alone.weights) < 0.05);
  for (double weight : both.weights) REQUIRE(std::isfinite(weight));
}
