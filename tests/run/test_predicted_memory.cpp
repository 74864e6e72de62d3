// SPDX-License-Identifier: Apache-2.0
// The memory that `check` predicts is the memory that a run takes, evaluation included.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

// Returns the amount after `words`, in MiB; -1: none.
double amount_mb(const std::string& out, const std::string& words) {
  const std::size_t at = out.find(words);
  if (at == std::string::npos) return -1;
  double amount = 0;
  std::string unit;
  std::istringstream(out.substr(at + words.size())) >> amount >> unit;
  unit.resize(3);
  return unit == "KiB" ? amount / 1024 : unit == "GiB" ? amount * 1024 : amount;
}

// Reads "memory      49.31 MiB a rank: ..", in MiB.
double predicted_mb(const std::string& out) { return amount_mb(out, "\nmemory"); }

std::string config_of(const std::string& model) {
  return fmt::format(
      "name = \"trial\"\n[model]\nzoo = \"{}\"\n[data]\ntrain = \"data/train\"\ntest = \"data/test\"\n[batch]\n"
      "global = 16\n[train]\nsteps = 1\n[optimizer]\nlearning_rate = 0.001\n[device]\nkind = \"onednn\"\nthreads = 1\n",
      model);
}

void make_data(const test::Trial& trial, const std::string& model) {
  if (model == "charlstm") {
    std::ofstream text(trial / "text.txt");
    for (int i = 0; i < 3000; ++i) text << "line " << i * 7919 % 1000 << "\n";
    trial.make_data({"import", "text", "text.txt", "--hold-out-part", "0.3", "--out", "data"});
    return;
  }
  for (const char* part : {"train", "test"})
    trial.make_data({"synth", "--samples", "256", "--shape", model == "cnn_32_64" ? "1,28,28" : "3,32,32", "--shards",
                     "1", "--out", std::string("data/") + part});
}

TEST_CASE("check predicts the memory of a run with evaluation to 2 %, and refuses what would not fit", "[run]") {
  for (const std::string model : {"cnn_32_64", "resnet20", "charlstm"}) {
    const test::Trial trial(config_of(model));
    make_data(trial, model);
    const test::Outcome plan = trial.check();
    INFO(model << "\n" << plan.out << plan.err);
    REQUIRE(plan.code == 0);
    CHECK_THAT(plan.out, Contains(", evaluation "));
    const test::Outcome run = trial.train(0);
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    const double predicted = predicted_mb(plan.out), held = trial.summary()["device_peak_mb"][0];
    CHECK(predicted == Approx(held).epsilon(0.02));
    if (model != "cnn_32_64") continue;
    const test::Sets plain = {"name=plain", "optimizer.momentum=0"};  // no velocity is stored
    const double less = predicted_mb(trial.check({plain[1]}).out);
    REQUIRE(trial.train(0, plain).code == 0);
    CHECK(less == Approx(trial.summary("plain")["device_peak_mb"][0].get<double>()).epsilon(0.02));
    const auto weights = test::checkpoint_values(trial.run("plain") + "/checkpoints/step-00000001.h5", "weights/");
    CHECK(predicted - less == Approx(static_cast<double>(4 * weights.size()) / 1048576).margin(0.011));
    for (const double part : {0.9, 1.1}) {
      const std::string limit = fmt::format("device.memory_limit_mb={:.3f}", part * held);
      const int code = part < 1 ? 6 : 0;
      CHECK(trial.check({limit}).code == code);
      CHECK(trial.train(0, {limit, "run.restart=never"}).code == code);
    }
  }
}

TEST_CASE("check predicts what rank 0 gathers for a checkpoint where replicas differ", "[run]") {
  const test::Trial trial;
  const std::vector<std::pair<std::string, test::Sets>> settings = {
      {"averaging", {"exchange.strategy=averaging"}},
      {"reset", {"exchange.strategy=averaging", "exchange.averaging.states=reset"}},
      {"elastic", {"exchange.strategy=elastic"}},
      {"gossip", {"exchange.strategy=gossip"}},
      {"noloco", {"exchange.strategy=noloco"}},
      {"strom", {"exchange.strategy=strom"}},
      {"residuals", {"exchange.codec=int8"}},
      {"momentum", {"exchange.codec=int8", "optimizer.momentum_before_coding=true"}},
      {"workers", {"exchange.strategy=asynchronous"}},
      {"stale", {"exchange.strategy=stale_synchronous", "exchange.codec=int8"}},
      {"servers", {"exchange.strategy=asynchronous", "exchange.asynchronous.states=server"}},
      {"backup", {"exchange.strategy=backup", "exchange.backup.replicas=1"}}};
  for (const auto& [name, own] : settings) {
    const test::Sets sets =
        test::with(own, {"name=" + name, "train.epochs=1", "checkpoint.asynchronous=false", "optimizer.momentum=0.9"});
    const std::string words = "in host memory of rank 0 for checkpoints";
    const test::Outcome plan = trial.check(sets, {"--ranks", "3"});
    const test::Outcome run = trial.train(3, sets);
    INFO(name << "\n" << plan.out << plan.err << run.out << run.err);
    REQUIRE((plan.code == 0 && run.code == 0));
    std::size_t values = 0;
    for (const char* part : {"strategy/local_", "strategy/deviation", "strategy/slow_weights",
                             "strategy/outer_momentum", "strategy/residual", "residual", "local_momentum"})
      values += test::last_values(trial, part, name).size();
    const double gathered_mb = 4 * static_cast<double>(values) / 1048576;
    CHECK(std::max(0.0, amount_mb(plan.out, words)) == Approx(gathered_mb).epsilon(0.01));
    const test::Outcome beside = trial.check(test::with(sets, {"checkpoint.asynchronous=true"}), {"--ranks", "3"});
    const double all = static_cast<double>(test::last_values(trial, "", name).size());
    CHECK(amount_mb(beside.out, words) >= 0.99 * 4 * all / 1048576);
  }
}

// Returns the prediction of `check` for one of 3 ranks, and the peak of a rank that writes no checkpoint, in MiB.
std::pair<double, double> predicted_and_held(const test::Trial& trial, const std::string& name, const test::Sets& own) {
  const test::Sets sets = test::with(own, {"name=" + name});
  const test::Outcome plan = trial.check(sets, {"--ranks", "3"}), run = trial.train(3, sets);
  INFO(name << "\n" << plan.out << plan.err << run.out << run.err);
  REQUIRE((plan.code == 0 && run.code == 0));
  const double host = std::max(0.0, amount_mb(plan.out, "in host memory of the exchange"));
  const std::vector<double> held = trial.summary(name)["peak_rss_mb"];
  return std::pair{predicted_mb(plan.out) + host, std::max(held[1], held[2])};
}

// Compares with a run that keeps nothing, on ranks that write no checkpoint.
TEST_CASE("check predicts the host memory of strategies and codecs", "[run]") {
  const test::Trial trial(
      "name = \"trial\"\n[[model.layers]]\ntype = \"flatten\"\n[[model.layers]]\ntype = \"dense\"\nunits = 4000\n"
      "[[model.layers]]\ntype = \"dense\"\nunits = 1000\n[data]\ntrain = \"data/train\"\n[batch]\nglobal = 6\n"
      "[train]\nepochs = 0\nsteps = 3\n[device]\nkind = \"onednn\"\nthreads = 1\n");
  trial.make_data(
      {"synth", "--samples", "60", "--shape", "1,28,28", "--classes", "1000", "--shards", "1", "--out", "data/train"});
  const auto [plain, plain_held] = predicted_and_held(trial, "plain", {});
  const double weights = amount_mb(trial.check({}).out, "weights");
  REQUIRE(weights == Approx(27.2).margin(0.2));
  if (!trial.summary("plain").contains("allocations_per_step")) return;  // a sanitised program keeps freed memory
  const std::vector<std::pair<std::string, test::Sets>> ways = {
      {"fp16", {"exchange.codec=fp16"}},
      {"int8", {"exchange.codec=int8"}},
      {"onebit", {"exchange.codec=onebit"}},
      {"coded-sums", {"exchange.codec=onebit", "exchange.code_sums=true"}},
      {"momentum", {"exchange.codec=fp16", "optimizer.momentum_before_coding=true"}},
      {"topk", {"exchange.codec=topk"}},
      {"naive", {"exchange.algorithm=naive"}},
      {"coded-servers", {"exchange.strategy=server", "exchange.codec=fp16"}},
      {"sorting-server", {"exchange.strategy=server", "exchange.codec=topk", "exchange.servers=3"}},
      {"averaging", {"exchange.strategy=averaging", "exchange.codec=int8"}},
      {"asynchronous", {"exchange.strategy=asynchronous"}},
      {"gossip", {"exchange.strategy=gossip"}},
      {"noloco", {"exchange.strategy=noloco", "exchange.noloco.period=1"}},
      {"strom", {"exchange.strategy=strom", "exchange.strom.tau=0.001"}},
      {"backup", {"exchange.strategy=backup"}},
      {"whole-strom", {"exchange.strategy=strom", "exchange.strom.warmup_steps=2"}}};
  for (const auto& [name, own] : ways) {
    const auto [predicted, held] = predicted_and_held(trial, name, own);
    INFO(name << ": predicted " << predicted - plain << ", held " << held - plain_held << ", weights " << weights);
    CHECK(std::abs((predicted - plain) - (held - plain_held)) < 0.3 * weights + 0.05 * predicted);
  }
}

// Rows of 9 values: 12 bytes each of 36, and not the 1/32 of long rows.
TEST_CASE("check predicts the messages of onebit by the rows of the tensors", "[run]") {
  const test::Trial trial(
      "name = \"trial\"\n[[model.layers]]\ntype = \"conv\"\nchannels = 600000\nkernel = 3\n[[model.layers]]\n"
      "type = \"flatten\"\n[[model.layers]]\ntype = \"dense\"\nunits = 2\n[data]\ntrain = \"data/train\"\n"
      "[batch]\nglobal = 3\n[train]\nepochs = 0\nsteps = 3\n[device]\nkind = \"onednn\"\nthreads = 1\n");
  trial.make_data(
      {"synth", "--samples", "60", "--shape", "1,3,3", "--classes", "2", "--shards", "1", "--out", "data/train"});
  const auto [plain, plain_held] = predicted_and_held(trial, "plain", {});
  const double weights = amount_mb(trial.check({}).out, "weights");
  REQUIRE(weights == Approx(27.5).margin(0.5));
  if (!trial.summary("plain").contains("allocations_per_step")) return;  // a sanitised program keeps freed memory
  const auto [predicted, held] = predicted_and_held(trial, "onebit", {"exchange.codec=onebit"});
  INFO("predicted " << predicted - plain << ", held " << held - plain_held << ", weights " << weights);
  CHECK(predicted - plain == Approx(weights * (1 + 3 * 0.34)).epsilon(0.03));
  CHECK(std::abs((predicted - plain) - (held - plain_held)) < 0.3 * weights + 0.05 * predicted);
}

TEST_CASE("a split chosen under a memory limit leaves room for evaluation", "[run]") {
  const test::Trial trial(config_of("cnn_32_64"));
  make_data(trial, "cnn_32_64");
  // Evaluation takes most of the memory: 64 samples on each of two replicas, against 8 in training.
  const test::Outcome plan = trial.check({"evaluate.batch=64"}, {"--ranks", "2"});
  const double replica = predicted_mb(plan.out);
  const test::Outcome run = trial.train(
      2, {"evaluate.batch=64", "parallel.split=auto", fmt::format("device.memory_limit_mb={:.3f}", 0.8 * replica)});
  INFO(plan.out << run.out << run.err);
  REQUIRE(run.code == 0);
  const nlohmann::json summary = trial.summary();
  for (const nlohmann::json& peak : summary["device_peak_mb"]) CHECK(peak.get<double>() <= 0.8 * replica);
}

}  // namespace
}  // namespace echelon
