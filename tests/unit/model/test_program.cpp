// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.hpp"
#include "model/zoo/zoo.hpp"
#include "optim/optimiser.hpp"
#include "tests/support/allocations.hpp"
#include "tests/support/layer_rows.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_layout_device.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using namespace echelon::test;
using Catch::Matchers::Contains;

namespace {

PlainBatch batch_of(const Graph& graph, std::int64_t n, std::int64_t first = 0) {
  return hashed_batch(form_of(graph), first, n, test_seed());
}

}  // namespace

TEST_CASE("losses sum over forward passes until they are reset", "[model]") {
  const Graph graph = small_cnn();
  Trainer trainer(graph, 4);
  PlainBatch batch = batch_of(graph, 4);
  batch.weights[2] = 0;
  const double once = trainer.loss(batch);
  trainer.program().forward({});
  const LossSums sums = trainer.program().losses();
  CHECK(sums.loss == Approx(2 * once));
  CHECK(sums.weight == 6);
  CHECK(sums.correct <= sums.weight);
  trainer.program().reset_losses();
  CHECK(trainer.program().losses().weight == 0);
}

TEST_CASE("values are read after a forward pass: logits always, others when kept", "[model]") {
  const Graph graph = small_cnn();
  Trainer plain(graph, 3), kept(graph, 3, {.keep_values = true});
  const PlainBatch batch = batch_of(graph, 3);
  plain.loss(batch);
  kept.loss(batch);
  CHECK(plain.read(plain.program().value("dense2")) == kept.read(kept.program().value("dense2")));
  CHECK_THROWS_WITH(plain.program().value("relu1"), Contains("keep_values"));
  CHECK_THROWS_WITH(plain.program().value("rellu1"), Contains("did you mean 'relu1'"));
  const auto before = kept.read(kept.program().value("conv1")), after = kept.read(kept.program().value("relu1"));
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i] == std::max(before[i], 0.0));
  CHECK(kept.program().activation_bytes() > plain.program().activation_bytes());
}

TEST_CASE("activations write over what nobody reads again", "[model]") {
  Trainer trainer(small_cnn(), 64);
  // Values and gradients of a sample after conv1 (8 x 8x8), pool1 (8 x 4x4), conv2 (16 x 4x4), pool2 (16 x 2x2), the
  // dense layers (32, 5), and the sample. Separate ReLUs would double those of the convolutions.
  const double values = 8 * 64 + 8 * 16 + 16 * 16 + 16 * 4 + 32 + 5 + 5 + 64;
  const double widest_gradient = 8 * 64 + 8 * 16;
  CHECK(static_cast<double>(trainer.program().activation_bytes()) / (64 * sizeof(double)) <
        1.15 * (values + widest_gradient));
}

TEST_CASE("ready comes in the order of back-propagation and covers the arena once", "[model]") {
  const Graph graph = small_batch_norm_net();
  Trainer trainer(graph, 4);
  std::vector<ArenaRange> ranges;
  trainer.gradients(batch_of(graph, 4), 4, true, [&](ArenaRange range) { ranges.push_back(range); });
  REQUIRE(ranges.size() == 5);
  std::int64_t end = graph.parameters().elems();
  for (const ArenaRange& range : ranges) {
    CHECK(range.end == end);
    end = range.begin;
  }
  CHECK(end == 0);
}

TEST_CASE("a gradient that was announced does not change any more", "[model]") {
  for (const LayerRow& row : layer_rows()) {
    INFO(row.name);
    const Graph graph = graph_of(row);
    Trainer trainer(graph, 2);
    std::vector<double> seen(static_cast<std::size_t>(graph.parameters().elems()), NAN);
    trainer.gradients(hashed_batch(row.form, 0, 2, test_seed()), 2, true, [&](ArenaRange range) {
      const std::vector<double> now = trainer.read_gradients();
      for (std::int64_t i = range.begin; i < range.end; ++i)
        seen[static_cast<std::size_t>(i)] = now[static_cast<std::size_t>(i)];
    });
    CHECK(seen == trainer.read_gradients());
  }
}

TEST_CASE("a forward pass asks for each node's parameters before it reads them", "[model]") {
  const Graph graph = small_cnn();
  Trainer trainer(graph, 2);
  std::vector<ArenaRange> ranges;
  trainer.program().set_wait_parameters([&](ArenaRange range) { ranges.push_back(range); });
  trainer.loss(batch_of(graph, 2));
  REQUIRE(ranges.size() == 4);
  CHECK(ranges.front().begin == 0);
  for (std::size_t i = 1; i < ranges.size(); ++i) CHECK(ranges[i].begin == ranges[i - 1].end);
  CHECK(ranges.back().end == graph.parameters().elems());
}

TEST_CASE("programs of other batch sizes share the arenas and agree sample by sample", "[model]") {
  const Graph graph = small_digits_cnn();
  Trainer trainer(graph, 6);
  Program single(graph, trainer.arenas(), {.batch = 1, .training = false});
  const PlainBatch batch = batch_of(graph, 6);
  const double all = trainer.loss(batch);
  double sum = 0;
  for (std::int64_t i = 0; i < 6; ++i) {
    const PlainBatch one = part_of(batch, i, 1);
    load_batch(trainer.arenas().device(), single, one);
    single.reset_losses();
    single.forward({});
    sum += single.losses().loss;
  }
  CHECK(sum == Approx(all).epsilon(1e-13));
  CHECK_THROWS(single.backward({}));
}

TEST_CASE("running statistics: unbiased, weighted over groups, used in evaluation", "[model]") {
  LayerConfig norm, flat, head;
  norm.type = "batch_norm", norm.momentum = 0.25;
  flat.type = "flatten", head.type = "dense", head.units = 2;
  const Graph graph = build_layers({norm, flat, head}, labelled({1, 2, 1}, 2));
  Trainer trainer(graph, 2);
  const auto group = [](std::vector<double> values) {
    return PlainBatch{.samples = std::move(values), .labels = {0, 1}, .weights = {1, 1}, .ids = {0, 1}};
  };
  trainer.gradients(group({1, 2, 3, 6}), 4, true);   // mean 3, unbiased variance 14/3
  trainer.gradients(group({0, 0, 4, 4}), 4, false);  // mean 2, unbiased variance 16/3
  const int mean = graph.parameters().find("batch_norm1.running_mean");
  const int var = graph.parameters().find("batch_norm1.running_var");
  CHECK(trainer.read(trainer.arenas().gradient(mean))[0] == Approx(2.5));
  CHECK(trainer.read(trainer.arenas().gradient(var))[0] == Approx(5.0));

  Optimiser optimiser({}, trainer.arenas());
  optimiser.begin_step(0, 0.0);
  optimiser.apply({0, graph.parameters().elems()});
  CHECK(trainer.read(trainer.arenas().weight(mean))[0] == Approx(0.25 * 2.5));
  CHECK(trainer.read(trainer.arenas().weight(var))[0] == Approx(0.75 + 0.25 * 5));

  Program evaluation(graph, trainer.arenas(), {.batch = 2, .training = false, .keep_values = true});
  const std::vector<double> samples = {1, 2, 3, 4};
  trainer.arenas().device().to_device(evaluation.input("samples").data, samples.data(), 4 * sizeof(double));
  evaluation.forward({});
  const std::vector<double> y = trainer.read(evaluation.value("batch_norm1"));
  for (std::size_t i = 0; i < 4; ++i) CHECK(y[i] == Approx((samples[i] - 0.625) / std::sqrt(2.0 + 1e-5)));
}

TEST_CASE("sparse gradients are those of a dense table, step after step and micro-batch after micro-batch", "[model]") {
  const bool tracked = GENERATE(true, false);
  const SampleForm form{.shape = {3}, .vocabulary = 50, .classes = 2};
  ModelConfig model;
  model.zoo = "ranking";
  const Graph graph = build_model(model, form);
  model.dense_embeddings = true;
  const Graph dense_graph = build_model(model, form);
  Trainer sparse(graph, 2), dense(dense_graph, 2);
  sparse.arenas().track_rows(tracked);
  for (std::int64_t step = 0; step < 5; ++step)
    for (std::int64_t micro = 0; micro <= step % 3; ++micro) {
      const PlainBatch batch = batch_of(graph, 2, 10 * step + 2 * micro);
      sparse.gradients(batch, 1, micro == 0);
      dense.gradients(batch, 1, micro == 0);
      REQUIRE(sparse.read_gradients() == dense.read_gradients());
    }
  CHECK(dense.arenas().parameters().elems() == sparse.arenas().parameters().elems());
  CHECK_FALSE(dense.arenas().parameters()[0].sparse);
  CHECK(sparse.arenas().parameters()[0].sparse);
  model.zoo = "cnn_32_64";
  CHECK_THROWS_WITH(build_model(model, labelled({1, 8, 8}, 5)), Contains("no embedding of the model is sparse"));
}

// Returns the program's own allocations in one step, after a first step.
std::uint64_t allocations_of_a_step(const Graph& graph, const TrainerOptions& options, const OptimiserConfig& config) {
  Trainer trainer(graph, 4, options);
  trainer.arenas().track_rows(true);
  Optimiser optimiser(config, trainer.arenas());
  trainer.load(batch_of(graph, 4));
  const std::function<void(ArenaRange)> ready = [](ArenaRange) {};
  const auto ours = [] { return allocations() - allocations_of_onednn(); };
  std::uint64_t before = 0;
  for (int step = 0; step < 3; ++step) {
    if (step == 1) before = ours();
    trainer.program().reset_losses();
    trainer.program().forward({});
    trainer.program().backward({}, ready);
    optimiser.begin_step(step, 0.01);
    if (optimiser.clips()) optimiser.clip(optimiser.measure({0, graph.parameters().elems()}));
    optimiser.apply({0, graph.parameters().elems()});
  }
  return ours() - before;
}

TEST_CASE("forward, backward and update allocate nothing", "[model]") {
  OptimiserConfig adam, clipped;
  adam.rule = "adam", clipped.clip_norm = 1;
  for (const Graph& graph : {small_cnn(), small_batch_norm_net()})
    for (const OptimiserConfig& config : {OptimiserConfig{}, adam, clipped})
      CHECK(allocations_of_a_step(graph, {}, config) == 0);
}

TEST_CASE("a step of a model of sequences on onednn allocates nothing of ours", "[model][onednn]") {
  for (const NamedGraph& model : small_sequence_models()) {
    CAPTURE(model.name);
    CHECK(allocations_of_a_step(model.graph, {.device = "onednn", .dtype = DType::f32}, {}) == 0);
  }
}

TEST_CASE("a step of LeNet and of ResNet-20 on onednn allocates nothing of ours", "[model][onednn]") {
  const std::uint64_t library = allocations_of_onednn();
  for (const char* name : {"cnn_32_64", "resnet20"}) {
    CAPTURE(name);
    const Graph graph = build_zoo(name, labelled({zoo_form(name).shape[0], 12, 12}, 10));
    CHECK(allocations_of_a_step(graph, {}, {}) == 0);
    CHECK(allocations_of_a_step(graph, {.device = "onednn", .dtype = DType::f32}, {}) == 0);
  }
  CHECK(allocations_of_onednn() > library);  // oneDNN's allocations are told from the program's own
}

TEST_CASE("the op reports name node, pass and body; profile times each", "[model]") {
  Trainer trainer(small_cnn(), 2);
  const std::vector<OpReport> ops = trainer.program().profile();
  REQUIRE(ops.size() == trainer.program().ops().size());
  CHECK(ops.front().node == "conv1");
  CHECK_FALSE(ops.front().backward);
  CHECK(ops.back().node == "conv1");
  CHECK(ops.back().spec.kind == OpKind::conv_backward_weights);
  for (const OpReport& op : ops) {
    CHECK(op.seconds > 0);
    CHECK_FALSE(op.implementation.empty());
  }
}

TEST_CASE("mixed precision: activations in halves, weights, gradients, inputs and logits in f32", "[model]") {
  struct Half {
    DType dtype;
    double tolerance;
  };
  for (const Graph& graph : {small_cnn(), small_batch_norm_net(), small_dropout_net()})
    for (const Half half : {Half{DType::f16, 0.02}, Half{DType::bf16, 0.2}})
      for (std::uint64_t layouts : {1, 2, 3}) {
        INFO(name_of(half.dtype) << " layouts " << layouts);
        // The samples are always the same: where rounding moves a maximum or a kink, gradients may differ by anything.
        const PlainBatch batch = hashed_batch(form_of(graph), 0, 6, 1);
        Trainer exact(graph, 6, {.dtype = DType::f64});
        Trainer mixed(graph, 6, {.dtype = DType::f32, .activations = half.dtype}, make_random_layout_device(layouts));
        CHECK(mixed.loss(batch) == Approx(exact.loss(batch)).epsilon(half.tolerance));
        exact.gradients(batch, 6, true);
        mixed.set_loss_scale(256);
        mixed.gradients(batch, 6, true);
        std::vector<double> gradients = mixed.read_gradients();
        for (const Parameter& p : graph.parameters().all())
          if (p.kind == ParameterKind::weight)
            for (std::int64_t i = p.begin; i < p.end(); ++i) gradients[static_cast<std::size_t>(i)] /= 256;
        CHECK(tensor_distance(graph.parameters(), gradients, exact.read_gradients()) < half.tolerance);
        CHECK(mixed.program().input("samples").dtype == DType::f32);
        CHECK(mixed.program().input("weights").dtype == DType::f32);
        const std::string logits = graph.nodes()[graph.nodes().size() - 2].name;
        CHECK(mixed.program().value(logits).dtype == DType::f32);
        CHECK(mixed.program().value(logits).layout == Layout::plain);
        int halves = 0, wide = 0;
        for (const OpReport& op : mixed.program().ops()) ++(is_half(op.spec.dtype) ? halves : wide);
        CHECK(halves > wide);
        CHECK(wide > 0);
      }
}

TEST_CASE("mixed precision: micro-batches add up, and losses of any kind compute in f32", "[model]") {
  const Graph graph = small_cnn();
  const PlainBatch batch = batch_of(graph, 6);
  const TrainerOptions options{.dtype = DType::f32, .activations = DType::bf16};
  Trainer whole(graph, 6, options, make_random_layout_device(5)),
      parts(graph, 3, options, make_random_layout_device(6));
  whole.gradients(batch, 6, true);
  parts.gradients(part_of(batch, 0, 3), 6, true);
  parts.gradients(part_of(batch, 3, 3), 6, false);
  CHECK(tensor_distance(graph.parameters(), parts.read_gradients(), whole.read_gradients()) < 0.05);
  for (const OpReport& op : whole.program().ops())
    if (op.spec.text().starts_with("loss")) CHECK(op.spec.dtype == DType::f32);
}

TEST_CASE("mixed precision: every layer computes as in f64 but for rounding", "[model]") {
  for (const LayerRow& row : layer_rows()) {
    INFO(row.name);
    const Graph graph = graph_of(row);
    const PlainBatch batch = hashed_batch(form_of(graph), 0, 4, 1);
    Trainer exact(graph, 4, {.dtype = DType::f64});
    Trainer mixed(graph, 4, {.dtype = DType::f32, .activations = DType::f16}, make_random_layout_device(3));
    CHECK(mixed.loss(batch) == Approx(exact.loss(batch)).epsilon(0.01));
    mixed.set_loss_scale(64);
    mixed.gradients(batch, 4, true);
    for (double gradient : mixed.read_gradients()) REQUIRE(std::isfinite(gradient));
    for (const OpReport& op : mixed.program().ops()) CHECK(op.spec.dtype != DType::f64);
  }
}
