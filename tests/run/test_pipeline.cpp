// SPDX-License-Identifier: Apache-2.0
// Split models as a user runs them: they have the weights of the unsplit run, and checkpoints that any mesh can resume.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/run/compare.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::with;

const test::Sets kDouble = {"device.kind=reference",  "device.dtype=f64",         "batch.global=24",
                            "batch.accumulation=2",   "checkpoint.every_steps=3", "exchange.verify_every_steps=2",
                            "optimizer.clip_norm=0.5"};

std::vector<double> gradient_norms(const test::Trial& trial, const std::string& name) {
  std::vector<double> norms;
  for (const nlohmann::json& row : trial.metrics(name))
    if (row["type"] == "step") norms.push_back(row["gradient_norm"]);
  return norms;
}

TEST_CASE("split models, alone and replicated, end with the weights of one rank, and any mesh goes on", "[run][slow]") {
  const test::Trial trial;
  const test::TrainedRun one = test::train_run(trial, "one", {{0, {"train.steps=24"}}}, kDouble);
  REQUIRE(one.values("").size() > 20000);  // weights and momentum

  struct Leg {
    int ranks, pipeline, tensor, space;
    const char* schedule;
  };
  const std::vector<Leg> legs = {{2, 2, 1, 1, "1f1b"}, {2, 1, 1, 2, ""}, {4, 2, 2, 1, "gpipe"}, {1, 1, 1, 1, ""},
                                 {4, 2, 1, 2, "1f1b"}, {4, 1, 2, 1, ""}, {3, 3, 1, 1, "1f1b"},  {4, 1, 1, 2, ""}};
  int step = 0;
  for (const Leg& leg : legs) {
    INFO(leg.ranks << " ranks, pipeline " << leg.pipeline << ", tensor " << leg.tensor << ", space " << leg.space);
    test::Sets sets = {fmt::format("train.steps={}", step + 3)};
    if (leg.pipeline > 1)
      sets = with(
          sets, {fmt::format("parallel.pipeline={}", leg.pipeline), fmt::format("parallel.schedule={}", leg.schedule)});
    if (leg.tensor > 1) sets = with(sets, {fmt::format("parallel.tensor={}", leg.tensor)});
    if (leg.space > 1) sets = with(sets, {fmt::format("parallel.space={}", leg.space)});
    const test::TrainedRun split = test::train_run(trial, "split", {{leg.ranks, sets}}, kDouble);
    step += 3;
    const nlohmann::json summary = split.summary();
    CHECK(summary["wire_bytes_per_step"] == summary["formula_bytes_per_step"]);
    int parts = 0;  // files of the newest checkpoint: one per part of the model, if it has several
    for (const auto& entry : std::filesystem::directory_iterator(trial.run("split") + "/checkpoints"))
      parts += entry.path().filename().string().starts_with(fmt::format("step-{:08}.part-", step));
    CHECK(parts == (leg.pipeline * leg.tensor > 1 ? leg.pipeline * leg.tensor : 0));
    CHECK(summary["mesh"]["pipeline"] == leg.pipeline);
    CHECK(summary["mesh"]["tensor"] == leg.tensor);
    CHECK(summary["mesh"]["space"] == leg.space);
    CHECK(summary["mesh"]["data"] == leg.ranks / leg.pipeline / leg.tensor / leg.space);
    CHECK((summary["split_bytes_per_step"] > 0) == (leg.pipeline * leg.tensor * leg.space > 1));
    CHECK((summary["halo_bytes_per_step"] > 0) == (leg.space > 1));
    CHECK((split.out.find("bubble") != std::string::npos) == (leg.pipeline > 1));
    const std::vector<double> spared = summary["activations_spared_mb"];
    const bool spares = leg.pipeline > 1 && std::string(leg.schedule) == "1f1b";
    CHECK((*std::max_element(spared.begin(), spared.end()) > 0) == spares);
    CHECK((split.out.find("1f1b: up to") != std::string::npos) == spares);
    if (step == 24) check_equal(split, one, {.part = "", .within = 1e-8, .evaluation = true});
  }
  const std::vector<double> norms = gradient_norms(trial, "split"), whole = gradient_norms(trial, "one");
  REQUIRE(norms.size() == 24);
  REQUIRE(whole.size() == 24);
  for (std::size_t i = 0; i < norms.size(); ++i) CHECK(norms[i] == Approx(whole[i]).epsilon(1e-9));
  CHECK(trial.attempts("split") == 8);
  CHECK(trial.leftovers().empty());
}

TEST_CASE("split models with a codec resume to the same bits, and with their residuals on other meshes",
          "[run][slow]") {
  // tests/contract/test_split_codecs.cpp tests every codec with every split.
  const auto [codec, strategy, ranks, mesh] = GENERATE(table<std::string, std::string, int, test::Sets>(
      {{"onebit", "synchronous", 8, {"parallel.tensor=2", "parallel.pipeline=2"}},
       {"threshold", "synchronous", 4, {"parallel.pipeline=2"}},
       {"topk", "server", 4, {"parallel.tensor=2"}}}));
  const test::Trial trial;
  const test::Sets coded = {"exchange.codec=" + codec, "exchange.strategy=" + strategy, "exchange.bucket_mb=0.01",
                            "batch.accumulation=2", "evaluate.every_epochs=0"};
  INFO(codec << " " << strategy);
  const test::TrainedRun whole = test::train_run(trial, "whole", {{ranks, with(mesh, {"train.steps=12"})}}, coded);
  check_equal(test::train_run(trial, "cut",
                              {{ranks, with(mesh, {"train.steps=7"})}, {ranks, with(mesh, {"train.steps=12"})}}, coded),
              whole, {.part = ""});
  // The residuals of replicas are resumed with a mesh of other parts and another number of replicas.
  const test::TrainedRun anew = test::train_run(trial, "cut", {{3, {"train.steps=16"}}}, coded);
  if (codec == "threshold") CHECK_THAT(anew.out, Contains("codec_tau") && Contains("starts at zero"));
  const test::TrainedRun last = test::train_run(
      trial, "cut",
      {{4, {codec == "topk" ? "parallel.pipeline=2" : "parallel.tensor=2", "train.steps=20"}}, {1, {"train.steps=51"}}},
      coded);
  CHECK(last.summary()["test_accuracy"].get<double>() > 0.8);
}

TEST_CASE("a flipped bit in one replica's part of a model is named", "[run][slow]") {
  const test::Trial trial;
  const test::Outcome outcome =
      trial.train(4, {"parallel.pipeline=2", "train.steps=8", "exchange.verify_every_steps=4", "run.allow_faults=true"},
                  {{"ECHELON_FAULT", "flip bit 20 of weight 0 of rank 3 at step 5"}});
  INFO(outcome.err);
  CHECK(outcome.code == 5);
  CHECK_THAT(outcome.err, Contains("no longer agree") && Contains("rank 3") && Contains("after step 8"));
}

TEST_CASE("impossible meshes and stages are refused with the numbers", "[run][slow]") {
  const test::Trial trial;
  const auto refused = [&](int ranks, const test::Sets& sets) {
    const test::Outcome outcome = trial.train(ranks, sets);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  CHECK_THAT(refused(3, {"parallel.pipeline=2"}),
             Contains("one replica takes 2 ranks") && Contains("nearest valid: 2 or 4"));
  CHECK_THAT(refused(2, {"parallel.recurrent_from=65"}), Contains("parallel.tensor > 1"));
  CHECK_THAT(refused(2, {"parallel.pipeline=64"}), Contains("one replica takes 64 ranks"));
}

TEST_CASE("what split models do not go with is refused with the reason", "[run]") {
  const test::Trial trial;
  const auto refused = [&](const test::Sets& sets) {
    const test::Outcome outcome = trial.train(2, with(sets, {"parallel.pipeline=2"}));
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  CHECK_THAT(refused({"exchange.strategy=server", "exchange.server.ranks=1"}),
             Contains("a server on a rank of its own holds a whole model"));
  CHECK_THAT(refused({"data.buckets=[8]"}), Contains("tensors between the ranks of a model have one length"));
  CHECK_THAT(refused({"data.as_replicas=2", "batch.shares=[1, 3]"}), Contains("micro-batches of one size"));
}

TEST_CASE("check prints the mesh", "[run]") {
  const test::Trial trial;
  const test::Outcome good =
      trial.check({"parallel.pipeline=2", "batch.accumulation=4"}, {"--replicas", "2", "--hosts", "2"});
  INFO(good.out << good.err);
  CHECK(good.code == 0);
  CHECK_THAT(good.out, Contains("data 2 x pipeline 2") && Contains("host  device  replica") &&
                           Contains("bubble at least 20.0 %"));
  const test::Outcome shards = trial.check({"parallel.tensor=2", "parallel.pipeline=2"});
  INFO(shards.out << shards.err);
  CHECK(shards.code == 0);
  CHECK_THAT(shards.out, Contains("tensor 2 of stage 0: conv by outputs, conv by inputs\n") &&
                             Contains("tensor 2 of stage 1: dense by outputs, dense by inputs\n"));
  const test::Outcome torn = trial.check({"parallel.pipeline=4"}, {"--replicas", "1", "--hosts", "2"});
  CHECK(torn.code == 2);
  CHECK_THAT(torn.err, Contains("host 0 has 2 ranks") && Contains("parallel.allow_across_nodes = true"));
  const test::Outcome spatial_shards = trial.check({"parallel.space=2"});
  INFO(spatial_shards.out << spatial_shards.err);
  CHECK(spatial_shards.code == 0);
  CHECK_THAT(spatial_shards.out, Contains("space 2") && Contains("of halos a sample"));
  const test::Outcome thin = trial.check({"parallel.space=64"});
  CHECK(thin.code == 2);
  CHECK_THAT(thin.err, Contains("parallel.space = 64") && Contains("each rank needs at least one"));
  const test::Outcome many = trial.check({"parallel.pipeline=40"});
  CHECK(many.code == 2);
  CHECK_THAT(many.err, Contains("more stages than the model has layers"));
}

}  // namespace
}  // namespace echelon
