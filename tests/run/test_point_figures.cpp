// SPDX-License-Identifier: Apache-2.0
// Figures of a run beside loss and accuracy: figures on the training data, the drift of replicas, the noise of
// gradients, and the bytes sent once warm-ups are over.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

using nlohmann::json;

json trained(const Trial& trial, const std::string& name, int ranks, const Sets& sets) {
  const Outcome outcome =
      trial.train(ranks, with({"name=" + name, "device.kind=reference", "device.dtype=f64", "train.epochs=1"}, sets));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  return trial.summary(name);
}

double at(const json& summary, const char* name) {
  INFO(name);
  REQUIRE(summary.contains(name));
  return summary[name].get<double>();
}

}  // namespace

TEST_CASE("the training data are evaluated by the weights of the test figures, on any number of ranks", "[evaluate]") {
  const Trial trial;
  const json same = trained(trial, "same", 1, {"data.test=train", "evaluate.train_fraction=1"});
  CHECK(at(same, "train_accuracy") == at(same, "test_accuracy"));
  CHECK(at(same, "train_eval_loss") == Approx(at(same, "test_loss")).epsilon(1e-12));  // only sums' order differs
  const json one = trained(trial, "one", 1, {"evaluate.train_fraction=0.3"});
  CHECK(at(one, "train_eval_loss") != Approx(at(same, "train_eval_loss")).epsilon(1e-6));
  for (const Sets& sets : {Sets{}, Sets{"evaluate.by=first"}, Sets{"parallel.tensor=3"}}) {
    const json three =
        trained(trial, "three" + std::to_string(sets.size()) + (sets.empty() ? "" : sets[0].substr(0, 3)), 3,
                with({"evaluate.train_fraction=0.3"}, sets));
    CHECK(at(three, "train_accuracy") == at(one, "train_accuracy"));
    CHECK(at(three, "train_eval_loss") == Approx(at(one, "train_eval_loss")).epsilon(1e-9));
  }
  CHECK(trained(trial, "none", 1, {}).contains("train_accuracy") == false);
}

TEST_CASE("drift and bytes behind warm-ups are those of the steps", "[run]") {
  const Trial trial;
  const json averaged = trained(trial, "averaged", 2, {"exchange.strategy=averaging", "exchange.averaging.period=4"});
  double sum = 0, meetings = 0;
  for (const json& row : trial.metrics("averaged"))
    if (row.contains("drift")) sum += row["drift"].get<double>(), ++meetings;
  REQUIRE(meetings > 2);
  CHECK(at(averaged, "drift") == Approx(sum / meetings).epsilon(1e-12));

  const Sets coded = {"device.dtype=f32", "exchange.codec=topk", "exchange.density=0.01"};
  const json from_start = trained(trial, "coded", 2, coded);
  const json later = trained(trial, "later", 2, with(coded, {"exchange.codec_warmup_steps=6"}));
  // Consecutive positions take fewer bits, so messages differ with the values, by less than 1 in 20.
  CHECK(at(later, "warm_wire_bytes_per_step") == Approx(at(from_start, "warm_wire_bytes_per_step")).epsilon(0.05));
  CHECK(at(later, "wire_bytes_per_step") > 3 * at(later, "warm_wire_bytes_per_step"));
}

TEST_CASE("the gradient noise scale of fixed weights does not depend on replicas or batch", "[run]") {
  const Trial trial;
  const Sets fixed = {"monitor.noise_scale=true", "optimizer.learning_rate=0", "train.epochs=12"};
  const double two = at(trained(trial, "two", 2, with(fixed, {"batch.global=16"})), "noise_scale");
  for (const Sets& sets : {Sets{"batch.global=48"}, Sets{"batch.global=16", "exchange.overlap=none"},
                           Sets{"batch.global=16", "exchange.algorithm=tree", "batch.accumulation=2"}}) {
    const double four =
        at(trained(trial, "four" + std::to_string(sets.size()) + sets.back().substr(6, 3), 4, with(fixed, sets)),
           "noise_scale");
    CAPTURE(two, four);
    CHECK(four == Approx(two).epsilon(0.25));  // 100 steps and more, with batches drawn from 800 samples
  }
  CHECK(trained(trial, "lone", 1, {"monitor.noise_scale=true"}).contains("noise_scale") == false);
  CHECK(trial.check({"monitor.noise_scale=true", "exchange.strategy=gossip"}).err.find("monitor.noise_scale") !=
        std::string::npos);
}

}  // namespace echelon::test
