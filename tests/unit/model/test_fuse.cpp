// SPDX-License-Identifier: Apache-2.0
// A fused program must compute the bits of the program with separate layers, in fewer ops.
#include <catch2/catch.hpp>

#include "device/onednn/onednn.hpp"
#include "tests/support/random.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using namespace echelon::test;
using Catch::Matchers::Contains;

namespace {

PlainBatch batch_of(const Graph& graph, std::int64_t n) { return hashed_batch(form_of(graph), 0, n, test_seed()); }

LayerConfig layer(const std::string& type, const std::string& name, const std::vector<std::string>& inputs = {}) {
  LayerConfig config;
  config.type = type, config.name = name, config.inputs = inputs;
  return config;
}
LayerConfig conv(const std::string& name, const std::vector<std::string>& inputs = {}, std::int64_t stride = 1) {
  LayerConfig config = layer("conv", name, inputs);
  config.channels = 5, config.kernel = {3}, config.padding = {1}, config.stride = {stride};
  return config;
}
LayerConfig dense(const std::string& name, const std::vector<std::string>& inputs = {}) {
  LayerConfig config = layer("dense", name, inputs);
  config.units = 4;
  return config;
}
Graph graph_of(std::vector<LayerConfig> layers) {
  layers.push_back(layer("flatten", "flat"));
  layers.push_back(dense("head"));
  return build_layers(layers, labelled({2, 6, 5}, 4));
}

// The form of a residual network: two blocks whose shortcut is their input, one with a projected shortcut.
Graph residual_blocks() {
  return graph_of({conv("c0"), layer("batch_norm", "n0"), layer("relu", "r0"),                                    //
                   conv("c1"), layer("batch_norm", "n1"), layer("add", "a1", {"n1", "r0"}), layer("relu", "r1"),  //
                   conv("c2"), layer("batch_norm", "n2"), layer("add", "a2", {"n2", "r1"}), layer("relu", "r2"),  //
                   conv("p3", {"r2"}, 2), conv("c3", {"r2"}, 2), layer("add", "a3", {"c3", "p3"}),
                   layer("relu", "r3")});
}

struct Ops {
  int all = 0, adds = 0, adds_with_relu = 0, masked_adds = 0, relus = 0, relu_gradients = 0;
};
Ops ops_of(const Program& program) {
  Ops ops;
  for (const OpReport& op : program.ops()) {
    ++ops.all;
    if (op.spec.kind == OpKind::add) ++(std::get<ElementwiseDims>(op.spec.dims).relu ? ops.adds_with_relu : ops.adds);
    if (op.spec.kind == OpKind::masked_add) ++ops.masked_adds;
    if (op.spec.kind == OpKind::activation_forward) ++ops.relus;
    if (op.spec.kind == OpKind::activation_backward) ++ops.relu_gradients;
  }
  return ops;
}

// Compares losses and gradients of two micro-batches to the bit.
void check_equal(Trainer& fused, Trainer& apart) {
  const PlainBatch batch = batch_of(fused.graph(), 6);
  CHECK(fused.loss(batch) == apart.loss(batch));
  for (const bool first : {true, false}) fused.gradients(batch, 6, first), apart.gradients(batch, 6, first);
  CHECK(fused.read_gradients() == apart.read_gradients());
}
void check_equal_everywhere(const Graph& graph) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    CAPTURE(name_of(dtype));
    Trainer fused(graph, 6, {.dtype = dtype}), apart(graph, 6, {.dtype = dtype, .keep_values = true});
    check_equal(fused, apart);
  }
  for (const DType activations : {DType::f32, DType::bf16}) {
    CAPTURE(name_of(activations));
    const auto open = [] { return make_onednn_device({.threads = 1, .emulate_halves = true}); };
    const TrainerOptions options{.dtype = DType::f32, .activations = activations};
    TrainerOptions kept = options;
    kept.keep_values = true;
    Trainer fused(graph, 6, options, open()), apart(graph, 6, kept, open());
    check_equal(fused, apart);
  }
}

}  // namespace

TEST_CASE("a relu behind batch norm runs inside it and changes nothing", "[model]") {
  LayerConfig conv, norm, relu, flat, head;
  conv.type = "conv", conv.channels = 3, conv.kernel = {3}, conv.padding = {1};
  norm.type = "batch_norm", relu.type = "relu", flat.type = "flatten", head.type = "dense", head.units = 4;
  const Graph graph = build_layers({conv, norm, relu, conv, norm, relu, flat, head}, labelled({2, 4, 5}, 4));
  Trainer fused(graph, 6), apart(graph, 6, {.keep_values = true});
  std::vector<std::string> kinds;
  for (const OpReport& op : fused.program().ops()) {
    kinds.emplace_back(name_of(op.spec.kind));
    CHECK(op.spec.kind != OpKind::activation_forward);
    CHECK(op.spec.kind != OpKind::activation_backward);
  }
  CHECK(kinds.size() + 4 == apart.program().ops().size());
  const PlainBatch batch = batch_of(graph, 6);
  CHECK(fused.loss(batch) == apart.loss(batch));
  fused.gradients(batch, 6, true), apart.gradients(batch, 6, true);
  CHECK(fused.read_gradients() == apart.read_gradients());
  CHECK_THROWS_WITH(fused.program().value("relu1"), Contains("keep_values"));
}

TEST_CASE("a relu before a max pool runs inside it and changes nothing", "[model]") {
  const Graph graph = small_cnn();
  Trainer fused(graph, 6), apart(graph, 6, {.keep_values = true});
  int pools = 0, relus = 0;
  for (const OpReport& op : fused.program().ops()) {
    if (const auto* pool = std::get_if<PoolDims>(&op.spec.dims)) pools += pool->relu ? 1 : 0;
    relus += op.spec.kind == OpKind::activation_forward ? 1 : 0;
  }
  CHECK(pools == 4);
  CHECK(relus == 1);
  const PlainBatch batch = batch_of(graph, 6);
  CHECK(fused.loss(batch) == apart.loss(batch));
  fused.gradients(batch, 6, true), apart.gradients(batch, 6, true);
  CHECK(fused.read_gradients() == apart.read_gradients());
}

TEST_CASE("a relu behind an add runs inside it and changes nothing", "[model]") {
  const Graph graph = residual_blocks();
  Trainer fused(graph, 6), apart(graph, 6, {.keep_values = true});
  const Ops of = ops_of(fused.program()), all = ops_of(apart.program());
  CHECK(of.adds_with_relu == 3);
  CHECK(of.relus == 0);
  CHECK(of.masked_adds == 1);     // for r1, which an add and a convolution read
  CHECK(of.relu_gradients == 2);  // for r2, to which two convolutions add, and for r3
  CHECK(of.adds == 1);            // for the gradient of r0
  CHECK(all.adds == 3 + 2);
  CHECK(all.adds_with_relu + all.masked_adds == 0);
  CHECK(of.all + 4 + 1 + 1 == all.all);  // four relus, the gradient of r0's, the sum of r1's gradient
  CHECK(fused.program().activation_bytes() < apart.program().activation_bytes());
  CHECK_THROWS_WITH(fused.program().value("a1"), Contains("keep_values"));
  check_equal_everywhere(graph);
}

TEST_CASE("a relu behind an add of three, and its gradient of three terms", "[model]") {
  const Graph graph = graph_of({conv("x"), conv("y"), conv("z"), layer("add", "a", {"x", "y", "z"}), layer("relu", "r"),
                                layer("add", "b", {"x", "r"}), conv("v", {"r"}), layer("add", "c", {"b", "v", "r"}),
                                layer("relu", "s")});
  Trainer fused(graph, 6);
  const Ops of = ops_of(fused.program());
  CHECK(of.adds_with_relu == 2);
  CHECK(of.masked_adds == 1);
  check_equal_everywhere(graph);
}

TEST_CASE("the gradient behind a fused add is that of each input, whatever else reads it", "[model]") {
  const Graph graph = graph_of({conv("y"), conv("x", {"samples"}), conv("z"), layer("add", "a", {"y", "x"}),
                                layer("relu", "r"), layer("add", "b", {"r", "z"}), layer("tanh", "t")});
  Trainer fused(graph, 6);
  CHECK(ops_of(fused.program()).adds_with_relu == 1);
  check_equal_everywhere(graph);
  const Graph twice = graph_of({conv("x"), layer("add", "a", {"x", "x"}), layer("relu", "r")});
  check_equal_everywhere(twice);
}

TEST_CASE("a relu whose sum another layer or the loss reads stays apart", "[model]") {
  const auto count = [](const Graph& graph) {
    Trainer trainer(graph, 6);
    return ops_of(trainer.program());
  };
  const Ops another = count(graph_of({conv("x"), conv("y"), layer("add", "a", {"x", "y"}), layer("relu", "r"),
                                      layer("add", "b", {"r", "a"}), layer("tanh", "t")}));
  CHECK(another.adds_with_relu + another.masked_adds == 0);
  CHECK(another.relus == 2);
  const Ops norm = count(
      graph_of({conv("x"), conv("y"), layer("add", "a", {"x", "y"}), layer("batch_norm", "n"), layer("relu", "r")}));
  CHECK(norm.adds_with_relu + norm.masked_adds == 0);
  const Graph logits = build_layers(
      {layer("flatten", "flat"), dense("x"), dense("y", {"flat"}), layer("add", "a", {"x", "y"}), layer("relu", "r")},
      labelled({2, 3, 3}, 4));
  CHECK(count(logits).adds_with_relu == 0);
  CHECK(count(logits).relus == 1);
}
