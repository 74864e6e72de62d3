// SPDX-License-Identifier: Apache-2.0
#include "parallel/time_chunk_pipeline.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "base/error.hpp"
#include "model/build.hpp"
#include "parallel/pipeline.hpp"
#include "tests/support/split_models.hpp"

namespace echelon {
namespace {

using namespace test;
using Catch::Matchers::Contains;

LayerConfig layer(const std::string& type, std::int64_t units, std::vector<std::string> inputs = {}) {
  LayerConfig config;
  config.type = type;
  config.units = units;
  config.inputs = std::move(inputs);
  return config;
}

// Builds an embedding, `lstms` LSTMs, a dense layer and the loss, for texts of `steps` steps.
Graph stack(int lstms, std::int64_t steps) {
  std::vector<LayerConfig> layers(static_cast<std::size_t>(lstms), layer("lstm", 4));
  layers.insert(layers.begin(), layer("embedding", 3));
  layers.push_back(layer("dense", 5));
  return build_layers(layers, {.shape = {steps}, .vocabulary = 5, .label = {steps}, .classes = 5});
}

const Graph& named(const std::vector<NamedGraph>& models, const std::string& name) {
  return std::find_if(models.begin(), models.end(), [&](const NamedGraph& m) { return m.name == name; })->graph;
}

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> all;
  for (const Node& node : graph.nodes()) all.push_back(node.name);
  return all;
}

std::set<std::string> parameter_names(const Graph& graph) {
  std::set<std::string> all;
  for (const Parameter& p : graph.parameters().all()) all.insert(p.name);
  return all;
}

TEST_CASE("time is cut chunk by chunk, and chunks share parameters", "[parallel][time_chunks]") {
  const Graph whole = stack(2, 7);  // embedding lstm lstm dense loss
  const auto [graph, stages] = cut_time(whole, {0, 0, 1, 1, 1}, 2);
  CHECK(names(graph) == std::vector<std::string>{"samples in steps", "embedding1@0", "lstm1@0", "lstm2@0", "dense1@0",
                                                 "embedding1@1", "lstm1@1", "lstm2@1", "dense1@1", "dense1", "loss"});
  CHECK(stages == std::vector<int>{0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1});
  CHECK(parameter_names(graph) == parameter_names(whole));
  CHECK(graph.parameters().elems() == whole.parameters().elems());
  CHECK(graph.nodes()[2].parameters == graph.nodes()[6].parameters);
  CHECK(graph.nodes()[6].owner == 2);
  // The second chunk begins with the states of the first.
  const auto value = [&](ValueId id) { return graph.values()[static_cast<std::size_t>(id)]; };
  const Node& second = graph.nodes()[6];
  REQUIRE(second.inputs.size() == 3);
  CHECK(value(second.inputs[0]).shape == Shape{4, 3});
  CHECK(value(second.inputs[1]).name == "lstm1@0.1");
  CHECK(value(second.inputs[2]).name == "lstm1@0.2");
  CHECK(value(graph.nodes()[2].outputs[0]).shape == Shape{3, 4});

  const std::vector<Cut> cuts = cuts_between(graph, stages);
  REQUIRE(cuts.size() == 2);
  CHECK((cuts[0].value == "lstm1@0" && cuts[0].shape == Shape{3, 4} && cuts[0].learns));
  CHECK((cuts[1].value == "lstm1@1" && cuts[1].shape == Shape{4, 4} && cuts[1].learns));
  CHECK(names(stage_graph(graph, stages, cuts, 0)) == std::vector<std::string>{"samples in steps", "embedding1@0",
                                                                               "lstm1@0", "send 0", "embedding1@1",
                                                                               "lstm1@1", "send 1"});
  CHECK(names(stage_graph(graph, stages, cuts, 1)) ==
        std::vector<std::string>{"lstm1@0", "lstm2@0", "dense1@0", "lstm1@1", "lstm2@1", "dense1@1", "dense1", "loss"});
}

TEST_CASE("what sees all steps takes chunks put together, and is cut again behind it", "[parallel][time_chunks]") {
  const std::vector<NamedGraph> models = small_stacks();
  const Graph& whole = named(models, "both_ways");
  CHECK(uncut_layers(whole) == std::vector<std::string>{"back", "last"});
  const Graph graph = cut_time(whole, std::vector<int>(whole.nodes().size()), 2).graph;
  CHECK(names(graph) == std::vector<std::string>{"samples in steps", "on@0", "on@1", "back", "back in steps",
                                                 "concat1@0", "top@0", "concat1@1", "top@1", "top", "last", "concat2",
                                                 "dense1", "loss"});
  const Node& concat = graph.nodes()[11];
  CHECK(graph.values()[static_cast<std::size_t>(concat.inputs[1])].name == "top@1.1");  // the last state
}

TEST_CASE("layers of an encoder and a decoder that are equally deep are on one stage", "[parallel][time_chunks]") {
  const std::vector<NamedGraph> models = small_stacks();
  const Graph& whole = named(models, "translation");
  const auto index = [&](const std::string& name) {
    const std::vector<std::string> all = names(whole);
    REQUIRE(std::find(all.begin(), all.end(), name) != all.end());
    return static_cast<std::size_t>(std::find(all.begin(), all.end(), name) - all.begin());
  };
  std::vector<double> costs(whole.nodes().size());
  for (const char* dear : {"e1", "e2", "d1", "d2", "top"}) costs[index(dear)] = 1;
  for (const int stages : {2, 3}) {
    const std::vector<int> of = time_chunk_stages(whole, costs, stages);
    CHECK(of[index("e1")] == of[index("d1")]);
    CHECK(of[index("e2")] == of[index("d2")]);
    CHECK(of.back() == stages - 1);
    for (const Cut& cut : cuts_between(cut_time(whole, of, 2).graph, cut_time(whole, of, 2).stages))
      CHECK(cut.from < cut.to);
  }
  const std::vector<int> of = time_chunk_stages(whole, costs, 3);
  CHECK((of[index("e1")] == 0 && of[index("e2")] == 1 && of[index("top")] == 2));
  CHECK_THROWS_WITH(time_chunk_stages(whole, costs, 13), Contains("at most"));
}

TEST_CASE("layers that cannot be split in time are refused by name", "[parallel][time_chunks]") {
  const Graph short_text = stack(1, 5);
  CHECK_THROWS_WITH(cut_time(short_text, {0, 0, 0, 0}, 6), Contains("'embedding1' takes sequences of 5 steps") &&
                                                               Contains("parallel.time_chunks = 6") &&
                                                               Contains("at most 5"));
  const Graph image = small_cnn();
  CHECK_THROWS_WITH(cut_time(image, std::vector<int>(image.nodes().size()), 2), Contains("the model has none"));
  LayerConfig back = layer("lstm", 4);
  back.reverse = true;
  const Graph reversed =
      build_layers({back, layer("sequence_pool", 0), layer("dense", 3)}, {.shape = {6, 2}, .classes = 3});
  CHECK_THROWS_WITH(cut_time(reversed, {0, 0, 0, 0}, 2), Contains("without reverse"));
}

// An event of a stage, forward or backward: it computes, gives a value to a cut, or waits for another stage's value.
struct Event {
  enum class Kind { computes, gives, waits } kind = Kind::computes;
  int cut = 0, micro = 0;
  bool backward = false;
  double takes = 0;
};

int cut_of(const Node& node) { return std::stoi(node.layer->attributes({}).substr(4)); }

// Recurrent layers take one unit of time per chunk forward and two backward; all other layers take none.
std::vector<Event> events(const Graph& part, const std::vector<Pass>& passes) {
  std::vector<Event> all;
  for (const Pass& pass : passes) {
    std::vector<Node> nodes = part.nodes();
    if (pass.backward) std::reverse(nodes.begin(), nodes.end());
    for (const Node& node : nodes) {
      const bool send = node.layer->kind() == "send", receive = node.layer->kind() == "receive";
      if (send || receive)
        all.push_back(
            {send == pass.backward ? Event::Kind::waits : Event::Kind::gives, cut_of(node), pass.micro, pass.backward});
      else if (layer_split(*node.layer).recurrent_states() > 0)
        all.push_back({.micro = pass.micro, .backward = pass.backward, .takes = pass.backward ? 2.0 : 1.0});
    }
  }
  return all;
}

struct Busy {
  double begin, end;
};

// Returns when each stage computes if transfers take no time.
std::vector<std::vector<Busy>> timeline(const std::vector<std::vector<Event>>& stages) {
  std::vector<std::vector<Busy>> busy(stages.size());
  std::vector<std::size_t> next(stages.size());
  std::vector<double> now(stages.size());
  std::map<std::tuple<int, int, bool>, double> given;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages.size(); ++s)
      for (; next[s] < stages[s].size(); ++next[s], moved = true) {
        const Event& event = stages[s][next[s]];
        const std::tuple key{event.cut, event.micro, event.backward};
        if (event.kind == Event::Kind::waits) {
          if (!given.contains(key)) break;
          now[s] = std::max(now[s], given[key]);
        }
        if (event.kind == Event::Kind::gives) given[key] = now[s];
        if (event.kind != Event::Kind::computes) continue;
        busy[s].push_back({now[s], now[s] + event.takes});
        now[s] += event.takes;
      }
  }
  for (std::size_t s = 0; s < stages.size(); ++s) REQUIRE(next[s] == stages[s].size());
  return busy;
}

std::vector<std::vector<Busy>> timeline_of(const std::string& schedule, int p, int m, int chunks) {
  const Graph whole = stack(p, 2 * chunks);  // one LSTM per stage
  std::vector<double> costs(whole.nodes().size());
  for (std::size_t i = 0; i < costs.size(); ++i) costs[i] = whole.nodes()[i].layer->kind() == "lstm" ? 1 : 0;
  const ChunkedGraph cut = cut_time(whole, time_chunk_stages(whole, costs, p), chunks);
  const std::vector<Cut> cuts = cuts_between(cut.graph, cut.stages);
  std::vector<std::vector<Event>> stages;
  for (int stage = 0; stage < p; ++stage)
    stages.push_back(events(stage_graph(cut.graph, cut.stages, cuts, stage), pipeline_passes(schedule, p, stage, m)));
  return timeline(stages);
}

int active_at(const std::vector<std::vector<Busy>>& busy, double time) {
  int active = 0;
  for (const std::vector<Busy>& stage : busy)
    active += std::any_of(stage.begin(), stage.end(), [&](Busy b) { return b.begin < time && time < b.end; });
  return active;
}

TEST_CASE("active stages of a time-chunk pipeline: 1, 2, .. p stages, then all, then fewer",
          "[parallel][time_chunks]") {
  for (const int p : {2, 4})
    for (const int chunks : {4, 8}) {
      INFO("p=" << p << " c=" << chunks);
      const std::vector<std::vector<Busy>> busy = timeline_of("gpipe", p, 1, chunks);
      const int ticks = chunks + p - 1;
      for (int tick = 0; tick < ticks; ++tick) {
        const int wanted = std::min({tick + 1, p, ticks - tick});
        CHECK(active_at(busy, tick + 0.5) == wanted);            // forward: one unit each
        CHECK(active_at(busy, ticks + 2 * tick + 1) == wanted);  // backward: two units each
      }
    }
}

TEST_CASE("a time-chunk pipeline has the bubble of the formula, with micro-batches by either schedule",
          "[parallel][time_chunks]") {
  for (const char* schedule : {"gpipe", "1f1b"})
    for (const int p : {1, 2, 3, 4})
      for (const int m : {1, 2, 5})
        for (const int chunks : {2, 3, 8}) {
          INFO(schedule << " p=" << p << " m=" << m << " c=" << chunks);
          double end = 0;
          for (const std::vector<Busy>& stage : timeline_of(schedule, p, m, chunks))
            end = std::max(end, stage.back().end);
          CHECK(1 - 3.0 * m * chunks / end == Approx(bubble_share(p, m, chunks)).margin(1e-12));
        }
}

}  // namespace
}  // namespace echelon
