// SPDX-License-Identifier: Apache-2.0
// Recurrent layers in a graph: their refusals, the sequences that have lengths, and states carried between passes.
#include <catch2/catch.hpp>
#include <set>

#include "base/error.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using namespace echelon::test;
using Catch::Matchers::Contains;

namespace {

LayerConfig layer(const std::string& type, std::int64_t units, const std::string& name = {},
                  const std::vector<std::string>& inputs = {}) {
  LayerConfig config;
  config.type = type;
  config.units = units;
  config.name = name;
  config.inputs = inputs;
  return config;
}

SampleForm text(std::int64_t places) {
  return {.shape = {places}, .vocabulary = 7, .label = {places}, .classes = 7, .stream = true};
}

std::string refusal(const std::vector<LayerConfig>& layers, const SampleForm& form) {
  return test::refusal<ConfigError>([&] { build_layers(layers, form); });
}

// A stack of all cells over a text.
Graph stack(std::int64_t places, bool carry) {
  std::vector<LayerConfig> layers = {layer("embedding", 4), layer("lstm", 5), layer("gru", 4), layer("rnn", 6),
                                     layer("dense", 7)};
  for (std::size_t i = 1; i < 4; ++i) layers[i].carry = carry;
  return build_layers(layers, text(places));
}

// Returns places [first, first + n) of every row of a batch over `places`.
PlainBatch window(const PlainBatch& batch, std::size_t places, std::size_t first, std::size_t n) {
  PlainBatch part{.samples = {}, .labels = {}, .weights = {}};
  part.ids = batch.ids;
  for (std::size_t row = 0; row < batch.samples.size(); row += places)
    for (std::size_t i = row + first; i < row + first + n; ++i) {
      part.samples.push_back(batch.samples[i]);
      part.labels.push_back(batch.labels[i]);
      part.weights.push_back(batch.weights[i]);
    }
  return part;
}

struct Names final : StateVisitor {
  explicit Names(bool load) : load_(load) {}
  bool loading() const override { return load_; }
  void tensor(const StateTensor& tensor) override {
    names.insert(std::string(tensor.name));
    CHECK(tensor.placement == Placement::per_replica);
    CHECK(tensor.other_k == OtherK::reset);
    auto* values = static_cast<double*>(tensor.data);
    for (std::int64_t i = 0; i < tensor.shape.elems(); ++i) {
      if (load_) values[i] = 0;
      largest = std::max(largest, std::abs(values[i]));
    }
  }
  void scalar(std::string_view, std::int64_t&, Absent) override {}
  void scalar(std::string_view, double&, Absent) override {}
  std::set<std::string> names;
  double largest = 0;

 private:
  bool load_;
};

}  // namespace

TEST_CASE("recurrent layers say what they cannot take", "[model]") {
  CHECK_THAT(refusal({layer("lstm", 4), layer("dense", 7)}, text(5)), Contains("put an embedding layer before it"));
  CHECK_THAT(refusal({layer("lstm", 4), layer("dense", 10)}, labelled({1, 8, 8}, 10)),
             Contains("takes a sequence of features (T, F), but its input is (1, 8, 8)"));
  const LayerConfig words = layer("embedding", 3, "words"), first = layer("lstm", 4, "first");
  CHECK_THAT(refusal({words, first, layer("lstm", 4, "second", {"words", "first.1"}), layer("dense", 7)}, text(5)),
             Contains("a sequence and the states h and c of another lstm, but 2 inputs are given"));
  CHECK_THAT(refusal({words, first, layer("gru", 3, "second", {"words", "first.1"}), layer("dense", 7)}, text(5)),
             Contains("state must have (3) values, but the given one has (4)"));
  LayerConfig carried = layer("lstm", 4);
  carried.carry = carried.reverse = true;
  CHECK_THAT(refusal({words, carried, layer("dense", 7)}, text(5)), Contains("carry = true continues"));
  LayerConfig small = words;
  small.vocabulary = 6;
  CHECK_THAT(refusal({small, first, layer("dense", 7)}, text(5)), Contains("the data has 7 tokens"));
}

TEST_CASE("lengths are of the samples' places: an encoder has them, a decoder has not", "[model]") {
  const SampleForm pairs{.shape = {4}, .vocabulary = 6, .label = {4}, .classes = 5, .lengths = true, .target = 4};
  const Graph graph = build_layers(
      {layer("embedding", 3, "source", {"samples"}), layer("gru", 4, "encoder"),
       layer("embedding", 3, "fed", {"target"}), layer("gru", 4, "decoder", {"fed", "encoder.1"}),
       layer("gru", 4, "again", {"encoder"}), layer("concat", 0, "both", {"decoder", "again"}), layer("dense", 5)},
      pairs);
  const ValueId lengths = graph.find("lengths");
  for (const Node& node : graph.nodes()) {
    const bool has = std::find(node.inputs.begin(), node.inputs.end(), lengths) != node.inputs.end();
    CAPTURE(node.name);
    CHECK(has == (node.name == "encoder" || node.name == "again"));
  }
}

TEST_CASE("carried states: two batches that follow one another are the long one", "[model]") {
  Trainer whole(stack(6, false), 2), carried(stack(3, true), 2), forgetful(stack(3, false), 2);
  const PlainBatch batch = hashed_batch(text(6), 0, 2, 4);
  const PlainBatch early = window(batch, 6, 0, 3), late = window(batch, 6, 3, 3);
  const double wanted = whole.loss(batch);
  CHECK(carried.loss(early) + carried.loss(late) == Approx(wanted).epsilon(1e-12));
  CHECK(forgetful.loss(early) + forgetful.loss(late) != Approx(wanted).epsilon(1e-6));
  carried.program().reset_states();
  CHECK(carried.loss(early) + carried.loss(late) == Approx(wanted).epsilon(1e-12));
}

TEST_CASE("carried states are shown, loaded, and kept apart by slot", "[model]") {
  CHECK_FALSE(Trainer(stack(3, false), 2).program().has_states());
  Trainer trainer(stack(3, true), 2);
  REQUIRE(trainer.program().has_states());
  const PlainBatch batch = hashed_batch(text(3), 0, 2, 4);
  const double fresh = trainer.loss(batch), second = trainer.loss(batch);
  CHECK(second != fresh);
  Names saved(false), cleared(true);
  trainer.program().visit_state(saved);
  CHECK(saved.names == std::set<std::string>{"states/lstm1.h", "states/lstm1.c", "states/gru1.h", "states/rnn1.h"});
  CHECK(saved.largest > 0);
  trainer.program().visit_state(cleared);
  CHECK(trainer.loss(batch) == fresh);
  CHECK(trainer.loss(batch) == second);

  Program slots(trainer.graph(), trainer.arenas(), {.batch = 2, .state_slots = 2});
  load_batch(trainer.arenas().device(), slots, batch);
  const auto loss_in = [&](int slot) {
    slots.reset_losses();
    slots.forward({.slot = slot});
    return slots.losses().loss;
  };
  CHECK(loss_in(0) == fresh);
  CHECK(loss_in(1) == fresh);
  CHECK(loss_in(0) == second);
  CHECK(loss_in(1) == second);
}
