// SPDX-License-Identifier: Apache-2.0
// Every model of the zoo is built and trained over the stand-in, which checks each call against the libraries' rules.
#include <catch2/catch.hpp>

#include "tests/cuda_calls/fixture.hpp"
#include "tests/support/replicas.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

constexpr DType kActivations[] = {DType::f32, DType::bf16, DType::f16};

// Trains for some steps, then returns everything.
void train(const Graph& graph, const Training::Options& options, const calls::Settings& settings, int steps = 2) {
  ledger().begin(settings);
  {
    Training training(graph, options);
    for (int step = 0; step < steps; ++step) training.step();
    training.device().synchronize();
  }
  CHECK(complaints() == "");
  CHECK(ledger().idle_waits() == 0);
  CHECK(ledger().calls() > 0);
}

std::vector<NamedGraph> small_models() {
  std::vector<NamedGraph> all = small_sequence_models();
  all.push_back({"cnn_32_64", small_cnn()});
  all.push_back({"dropout", small_dropout_net()});
  all.push_back({"batch norm", small_batch_norm_net()});
  return all;
}

}  // namespace

TEST_CASE("every model of the zoo keeps the libraries' rules, in f32 and in halves", "[cuda_calls][zoo]") {
  for (const std::string& name : zoo_names()) {
    const Graph graph = small_zoo_model(name);
    for (const DType activations : kActivations) {
      INFO(name << " " << name_of(activations));
      // cuDNN 9 has no deterministic gradient of weights for its dilations (configs/ZOO.md).
      train(graph, {.activations = activations, .allow_fallback = name == "deepcam"}, {});
    }
  }
}

TEST_CASE("work that runs only when somebody waits for it finds its memory in place", "[cuda_calls]") {
  for (const NamedGraph& model : small_models())
    for (const DType activations : kActivations) {
      INFO(model.name << " " << name_of(activations));
      train(model.graph, {.activations = activations}, {.late = true});
    }
  for (const NamedGraph& model : small_models()) {
    INFO(model.name << " f64");
    train(model.graph, {.activations = DType::f64, .dtype = DType::f64}, {.late = true});
  }
}

TEST_CASE("CUDA graphs capture nothing that waits or takes memory", "[cuda_calls]") {
  std::int64_t launched = 0;
  for (const NamedGraph& model : small_models())
    for (const bool late : {false, true}) {
      INFO(model.name << (late ? " late" : ""));
      train(model.graph, {.activations = DType::bf16, .replay = true}, {.late = late}, 5);
      launched += ledger().counts()["cudaGraphLaunch"];
    }
  CHECK(launched > 0);
}

TEST_CASE("every optimiser's rule keeps the libraries' rules", "[cuda_calls]") {
  for (const char* rule : {"sgd", "adam", "adamw", "rmsprop", "lars", "lamb"}) {
    INFO(rule);
    OptimiserConfig config;
    config.rule = rule;
    train(small_cnn(), {.optimiser = config}, {});
  }
}

TEST_CASE("recurrent layers of bf16 compute in f32 where cuDNN has none", "[cuda_calls]") {
  for (const std::size_t version : {std::size_t{90000}, std::size_t{0}}) {
    train(small_zoo_model("charlstm"), {.activations = DType::bf16}, {.dnn_version = version});
    CHECK(ledger().counts()["cudnnRNNForward"] > 0);
  }
}

TEST_CASE("convolutions whose algorithms the library refuses, in its answers or when they run", "[cuda_calls]") {
  // The first algorithms of each direction; then all of them, for which plain loops must be allowed.
  constexpr std::uint64_t kSome = 0x0001'0002'0042, kAll = ~std::uint64_t{0};
  for (const std::uint64_t refused : {kSome, kAll})
    for (const bool late : {false, true})
      for (const DType activations : {DType::f32, DType::bf16}) {
        INFO(std::hex << refused << (late ? " when they run " : " ") << name_of(activations));
        train(small_batch_norm_net(), {.activations = activations, .allow_fallback = true},
              {.refused = refused, .refused_late = late});
      }
  for (const bool late : {false, true}) {
    ledger().begin({.refused = kAll, .refused_late = late});
    CHECK_THROWS_WITH(Training(small_batch_norm_net(), {}).step(), Catch::Contains("device.allow_fallback"));
    CHECK(complaints() == "");
  }
}
