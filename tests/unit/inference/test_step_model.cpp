// SPDX-License-Identifier: Apache-2.0
#include "inference/step_model.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "inference/sampler.hpp"
#include "model/build.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using Tokens = std::vector<std::int32_t>;

constexpr std::uint64_t kSeed = 5;

LayerConfig layer(const std::string& type, std::int64_t units = 0, std::vector<std::string> inputs = {},
                  const std::string& name = {}) {
  LayerConfig config;
  config.type = type;
  config.units = units;
  config.inputs = std::move(inputs);
  config.name = name;
  return config;
}

ModelConfig zoo(const std::string& name) {
  ModelConfig model;
  model.zoo = name;
  return model;
}

SampleForm text_form(std::int64_t steps, std::int64_t tokens) {
  return {.shape = {steps}, .vocabulary = tokens, .label = {steps}, .classes = tokens};
}

constexpr std::int64_t kSource = 5, kTarget = 6, kTokens = 11, kClasses = 9;
const SampleForm kPairs = {.shape = {kSource},
                           .vocabulary = kTokens,
                           .label = {kTarget},
                           .classes = kClasses,
                           .lengths = true,
                           .target = kTarget};

// An encoder, and a decoder that attends to the encoder's places (Luong et al. 2015).
ModelConfig attentive() {
  ModelConfig model;
  LayerConfig attention = layer("attention", 0, {"queries", "keys", "values"}, "context");
  attention.heads = 2;
  model.layers = {layer("embedding", 4, {"samples"}),
                  layer("lstm", 6, {}, "encoder"),
                  layer("dense", 6, {}, "keys"),
                  layer("dense", 6, {"encoder"}, "values"),
                  layer("embedding", 4, {"target"}),
                  layer("lstm", 6, {"embedding2", "encoder.1", "encoder.2"}, "decoder"),
                  layer("gru", 6, {}, "second"),
                  layer("dense", 6, {}, "queries"),
                  attention,
                  layer("concat", 0, {"second", "context"}),
                  layer("dense", kClasses)};
  return model;
}

Tokens drawn(const std::string& name, std::int64_t count, std::int64_t below) {
  const HashRng rng(1, name);
  Tokens tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(
        static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(below))));
  return tokens;
}

struct Input {
  const char* name;
  const Tokens* values;
};

// Returns the logits of a plain forward pass through the whole model, in double on the oracle.
std::vector<double> whole_pass(const ModelConfig& model, const SampleForm& form, std::int64_t batch,
                               const std::vector<Input>& inputs) {
  const auto device = open_device("reference", {});
  const Graph graph = build_model(model, form);
  Arenas arenas(*device, graph.parameters(), DType::f64);
  arenas.initialise(kSeed);
  Program program(graph, arenas, {.batch = batch, .training = false});
  for (const Input& input : inputs) {
    const Tensor to = program.input(input.name);
    device->to_device(to.data, input.values->data(), to.bytes());
  }
  program.forward({});
  const Node& loss = graph.nodes()[static_cast<std::size_t>(graph.loss())];
  const Tensor logits = program.value(graph.values()[static_cast<std::size_t>(loss.inputs.front())].name);
  std::vector<double> values(static_cast<std::size_t>(logits.elems()));
  device->to_host(values.data(), logits.data, logits.bytes());
  return values;
}

// Sets weights by name, as Arenas::initialise does in the whole model.
class SeededWeights final : public StateVisitor {
 public:
  SeededWeights(const ModelConfig& model, const SampleForm& form)
      : device_(open_device("reference", {})), arenas_(*device_, build_model(model, form).parameters(), DType::f64) {
    arenas_.initialise(kSeed);
  }
  bool loading() const override { return true; }
  void tensor(const StateTensor& t) override {
    const ParameterSet& all = arenas_.parameters();
    const int at = all.find(std::string(t.name).substr(std::string("weights/").size()));
    REQUIRE(at >= 0);
    REQUIRE(t.shape == all[at].shape);
    const Tensor from = arenas_.weight(at);
    device_->to_host(t.data, from.data, from.bytes());
  }
  void scalar(std::string_view, std::int64_t&, Absent) override {}
  void scalar(std::string_view, double&, Absent) override {}

 private:
  std::unique_ptr<Device> device_;
  Arenas arenas_;
};

struct Steps {
  std::unique_ptr<Device> device = open_device("reference", {});
  StepwiseModel model;
  Steps(const ModelConfig& config, const SampleForm& form, std::int64_t sentences, std::int64_t beams)
      : model(step_graphs(config, form), *device, DType::f64, sentences, beams) {
    SeededWeights weights(config, form);
    model.visit_weights(weights);
  }
};

double farthest(std::span<const double> a, std::span<const double> b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

TEST_CASE("language models read token by token as they read windows", "[inference][step_model]") {
  ModelConfig own;
  own.layers = {layer("embedding", 3), layer("gru", 4),  layer("rnn", 4),  layer("layer_norm"),
                layer("tanh"),         layer("dropout"), layer("dense", 7)};
  own.layers[5].rate = 0.5;
  for (const auto& [model, tokens] : {std::pair{zoo("charlstm"), 65}, {zoo("chargru"), 30}, {own, 7}}) {
    constexpr std::int64_t kSteps = 6;
    const SampleForm form = text_form(kSteps, tokens);
    const Tokens text = drawn("text", 2 * kSteps, tokens);
    const std::vector<double> windows = whole_pass(model, form, 2, {{"samples", &text}});
    Steps steps(model, form, 2, 1);
    for (int again = 0; again < 2; ++again, steps.model.begin())
      for (std::int64_t t = 0; t < kSteps; ++t) {
        const Tokens newest = {text[static_cast<std::size_t>(t)], text[static_cast<std::size_t>(kSteps + t)]};
        const std::span<const double> logits = steps.model.read(newest);
        for (std::int64_t row = 0; row < 2; ++row) {
          const auto K = static_cast<std::size_t>(tokens);
          const auto at = static_cast<std::size_t>(row * kSteps + t) * K;
          CHECK(farthest(logits.subspan(static_cast<std::size_t>(row) * K, K), std::span(windows).subspan(at, K)) <
                1e-12);
        }
      }
  }
}

TEST_CASE("greedy text by states is greedy text by growing windows", "[inference][step_model]") {
  const ModelConfig model = zoo("charlstm");
  constexpr std::int64_t kClassesOfText = 20;
  Tokens text = {3, 14, 1};
  Steps steps(model, text_form(64, kClassesOfText), 1, 1);
  Tokens written = text;
  continue_text(steps.model, text, 12, {.temperature = 0}, [&](std::int32_t token) { written.push_back(token); });
  for (int i = 0; i < 12; ++i) {
    const auto steps_now = static_cast<std::int64_t>(text.size());
    const std::vector<double> logits = whole_pass(model, text_form(steps_now, kClassesOfText), 1, {{"samples", &text}});
    const auto last = logits.end() - kClassesOfText;
    text.push_back(static_cast<std::int32_t>(std::max_element(last, logits.end()) - last));
  }
  CHECK(written == text);
}

TEST_CASE("decoders read the target token by token as the whole model does", "[inference][step_model]") {
  const Tokens sources = drawn("sources", 3 * kSource, kTokens), lengths = {5, 2, 4};
  const Tokens target = drawn("target", 3 * kTarget, kClasses);
  for (const ModelConfig& model : {zoo("translation"), attentive()}) {
    const std::vector<double> whole =
        whole_pass(model, kPairs, 3, {{"samples", &sources}, {"lengths", &lengths}, {"target", &target}});
    constexpr std::int64_t kBeams = 2;
    Steps steps(model, kPairs, 3, kBeams);
    for (int again = 0; again < 2; ++again) {
      steps.model.begin({.tokens = sources.data(), .lengths = lengths.data()});
      for (std::int64_t t = 0; t < kTarget; ++t) {
        // A source's first beam reads its target; the other beam reads something else, and is then replaced.
        Tokens newest;
        for (std::int64_t s = 0; s < 3; ++s) {
          const std::int32_t token = target[static_cast<std::size_t>(s * kTarget + t)];
          newest.insert(newest.end(), {token, t % 2 == 0 ? token : (token + 1) % static_cast<std::int32_t>(kClasses)});
        }
        const std::span<const double> logits = steps.model.read(newest);
        for (std::int64_t s = 0; s < 3; ++s)
          CHECK(farthest(logits.subspan(static_cast<std::size_t>(s * kBeams * kClasses), kClasses),
                         std::span(whole).subspan(static_cast<std::size_t>((s * kTarget + t) * kClasses), kClasses)) <
                1e-12);
        const std::vector<std::int64_t> first = {0, 0, 2, 2, 4, 4};
        steps.model.go_on_from(first);
      }
    }
  }
}

TEST_CASE("models that look at more than the newest token and a state are refused", "[inference][step_model]") {
  CHECK_THROWS_WITH(step_graphs(zoo("transformer"), text_form(8, 10)), Contains("zoo transformer: layer 'position1'"));
  CHECK_THROWS_WITH(step_graphs(zoo("sequence_classifier"), zoo_form("sequence_classifier")),
                    Contains("does not predict a token at each position"));
  ModelConfig model;
  model.layers = {layer("embedding", 3), layer("lstm", 4), layer("dense", 7)};
  model.layers[1].reverse = true;
  CHECK_THROWS_WITH(step_graphs(model, text_form(8, 7)),
                    Contains("layer 'lstm1' (lstm) reads all positions of a text"));
  ModelConfig states = attentive();
  states.layers[6].inputs = {"decoder", "decoder.1"};
  CHECK_THROWS_WITH(step_graphs(states, kPairs), Contains("layer 'second' (gru) reads the state after the last token"));
}

}  // namespace
}  // namespace echelon
