// SPDX-License-Identifier: Apache-2.0
// Nets with a label for every place, whose decoder makes rows again, must end with the weights of the unsplit model
// when each rank has some rows of samples, values and labels; in double.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "model/layers/list.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/support/random.hpp"
#include "tests/support/space_runs.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr const char* kDevices[] = {"reference", "discrete"};

LayerConfig layer(const std::string& type, std::vector<std::string> inputs = {}, const std::string& name = "") {
  LayerConfig config;
  config.type = type;
  config.inputs = std::move(inputs);
  config.name = name;
  return config;
}

LayerConfig conv(std::int64_t channels, std::int64_t kernel, std::int64_t stride = 1,
                 std::vector<std::string> inputs = {}, const std::string& name = "") {
  LayerConfig config = layer("conv", std::move(inputs), name);
  config.channels = channels;
  config.kernel = {kernel}, config.stride = {stride}, config.padding = {kernel / 2};
  return config;
}

LayerConfig up(const std::string& mode, std::vector<std::int64_t> factor) {
  LayerConfig config = layer("upsample");
  config.mode = mode;
  config.factor = std::move(factor);
  return config;
}

LayerConfig transposed(std::int64_t channels, std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0,
                       std::int64_t more = 0, std::int64_t dilation = 1) {
  LayerConfig config = layer("conv_transpose");
  config.channels = channels;
  config.kernel = {kernel}, config.stride = {stride}, config.padding = {padding};
  config.output_padding = {more}, config.dilation = {dilation};
  return config;
}

// The form of samples (C, ..) with a class for every place of the output, which has `rows` rows.
SampleForm classes_of_places(const Shape& sample, std::int64_t classes) {
  return {.shape = sample, .label = sample.without_front(), .classes = classes, .dense = true};
}

Graph unet(const Shape& sample, std::vector<std::int64_t> widths, const std::string& loss) {
  ModelConfig model;
  model.zoo = "unet";
  model.widths = std::move(widths);
  model.loss = loss;
  SampleForm form = classes_of_places(sample, 3);
  if (loss == "mae" || loss == "bce") form.classes = 0, form.dense = false;
  if (loss == "mse") form.classes = 0, form.dense = false, form.label = form.label.prepended(2);
  return build_model(model, form);
}

// As deepcam ends: atrous convolutions beside the mean of the image, and transposed convolutions that double rows.
Graph pyramid() {
  LayerConfig atrous = conv(3, 3, 1, {"deep"});
  atrous.dilation = atrous.padding = {2};
  return build_layers({conv(4, 3, 1, {}, "high"),
                       layer("relu", {}, "low"),
                       conv(4, 3, 2),
                       layer("relu"),
                       conv(5, 3, 2),
                       layer("relu", {}, "deep"),
                       conv(2, 1, 1, {"deep"}, "near"),
                       atrous,
                       layer("relu", {}, "far"),
                       layer("global_avg_pool", {"deep"}),
                       conv(2, 1),
                       layer("relu"),
                       up("nearest", {5, 2}),
                       layer("concat", {"upsample1", "near", "far"}),
                       conv(4, 1),
                       transposed(3, 3, 2, 1, 1),
                       layer("relu"),
                       transposed(3, 3, 2, 1, 1),
                       layer("relu", {}, "wide"),
                       layer("concat", {"wide", "low"}),
                       conv(3, 1)},
                      classes_of_places({2, 20, 8}, 3), {});
}

SplitRun run_of(const Graph& graph, int spatial_shards, int replicas, const char* device) {
  SplitRun run = space_of(graph, spatial_shards, std::vector<std::int64_t>(static_cast<std::size_t>(replicas), 4), 2);
  run.replicas.device = device;
  run.replicas.steps = 4;
  return run;
}

std::int64_t most_activations(const SplitResult& result) {
  return static_cast<std::int64_t>(*std::max_element(result.activation_bytes.begin(), result.activation_bytes.end()));
}

}  // namespace

TEST_CASE("slabs of u-nets, with their labels, have the weights of whole samples", "[split][space][dense]") {
  const std::vector<std::pair<const char*, Graph>> nets = {
      {"images", unet({2, 20, 8}, {2, 3, 4}, "auto")}, {"volumes", unet({1, 12, 4, 8}, {2, 4}, "auto")},
      {"focal", unet({1, 12, 4}, {2, 3}, "focal")},    {"dice", unet({1, 12, 4}, {2, 3}, "dice")},
      {"mae", unet({1, 12, 4}, {2, 3}, "mae")},        {"bce", unet({1, 12, 4}, {2, 3}, "bce")},
      {"fields", unet({1, 12, 4}, {2, 3}, "mse")},     {"pyramid", pyramid()}};
  for (const auto& [name, graph] : nets)
    for (const auto& [spatial_shards, replicas] : kGroupsAndReplicas)
      for (const char* device : kDevices)
        DYNAMIC_SECTION(name << " s=" << spatial_shards << " k=" << replicas << device) {
          if (device != kDevices[0] && replicas > 1) continue;
          if (graph.find("high") >= 0 && spatial_shards > 3) continue;  // atrous windows would reach beyond neighbours
          CHECK(check_split(run_of(graph, spatial_shards, replicas, device)).halo_bytes > 0);
        }
}

// Each step has two micro-batches of 2 samples, and a sample 2 K + 1 sums. The same terms are added in another order:
// the loss has 48 places, its slopes reach the weights through sums over at most 8 x 48 x 27 of them.
TEST_CASE("slabs add the sums of dice and gather no logits", "[split][space][dense]") {
  const Graph graph = unet({1, 12, 4}, {2, 3}, "dice");
  for (const int spatial_shards : {2, 4}) {
    SplitRun run = run_of(graph, spatial_shards, 1, "reference");
    run.replicas.steps = 1;
    const SplitResult split = check_split(run);
    const ReplicaResult whole = train_replicas(on_one_replica(run.replicas, true));
    CHECK(tensor_distance(graph.parameters(), split.gradients, whole.gradients) <= 1e-12);
    CHECK(split.loss == Approx(whole.loss).epsilon(1e-14));
    std::vector<Cut> cuts;
    const SpacePlan plan(graph, spatial_shards);
    (void)spatial_shard_graph(graph, std::vector<int>(graph.nodes().size(), 0), plan, 0, cuts);
    const auto is = [](CutKind kind) { return [kind](const Cut& cut) { return cut.kind == kind; }; };
    CHECK(std::none_of(cuts.begin(), cuts.end(), is(CutKind::rows)));
    const auto sums = std::find_if(cuts.begin(), cuts.end(), is(CutKind::sample_sums));
    REQUIRE(sums != cuts.end());
    CHECK(sums->shape == Shape{7});
    CHECK(std::count_if(cuts.begin(), cuts.end(), is(CutKind::sample_sums)) == 1);
    // Beside focal loss, which sends nothing: in each micro-batch 7 sums of 2 samples, to each of the other ranks at
    // most twice. Rows of logits would be 3 x 48 numbers of each.
    run.replicas.graph = unet({1, 12, 4}, {2, 3}, "focal");
    const double more = split.sent_bytes - train_split(run).sent_bytes;
    CHECK((more > 0 && more <= 2 * spatial_shards * (spatial_shards - 1) * 2 * 2 * 7 * sizeof(double)));
  }
}

TEST_CASE("slabs of decoders in stages and with split units", "[split][space][dense]") {
  for (const Graph& graph : {pyramid(), unet({1, 12, 4}, {2, 3}, "auto")}) {
    SplitRun run = run_of(graph, 2, 1, "reference");
    run.parallel.pipeline = 2;
    check_split(run);
    run = run_of(graph, 2, 2, "reference");
    run.parallel.tensor = 2;
    check_split(run);
  }
}

TEST_CASE("rows: every way to make more of them", "[split][space][dense]") {
  int fit = 0;
  const auto check = [&](const LayerConfig& made, std::int64_t rows, const std::string& what) {
    const std::vector<LayerConfig> layers = {conv(3, 3), layer("tanh"), made, conv(3, 1)};
    for (const int spatial_shards : {2, 3, 4})
      for (const char* device : kDevices) {
        INFO(what << " rows " << rows << " s=" << spatial_shards << " " << device);
        SampleForm form = classes_of_places({2, rows, 3}, 3);
        Graph probe;
        const ValueId in = probe.input("samples", {3, rows, 3});
        const Shape out =
            probe.values()[static_cast<std::size_t>(probe.add("up", make_layer(made), {in}).front())].shape;
        form.label = out.without_front();
        SplitRun run = run_of(build_layers(layers, form, {}), spatial_shards, 1, device);
        run.replicas.steps = 2;
        if (!fits(run.replicas.graph, spatial_shards)) continue;
        check_split(run);
        ++fit;
      }
  };
  for (const char* mode : {"nearest", "linear"})
    for (const std::int64_t factor : {1, 2, 3, 4}) check(up(mode, {factor}), 7, fmt::format("{} {}", mode, factor));
  int number = 0;
  for (const std::int64_t stride : {1, 2, 3})
    for (const std::int64_t kernel : {1, 2, 3, 4})
      for (const std::int64_t dilation : {1, 2}) {
        const auto drawn = random_integers(3, 0, 1 << 20, fmt::format("transposed {}", number++));
        const std::int64_t padding = drawn[0] % (dilation * (kernel - 1) + 1), more = drawn[1] % stride;
        check(
            transposed(2, kernel, stride, std::min<std::int64_t>(padding, 2), more, dilation), 7 + drawn[2] % 3,
            fmt::format("transposed {} stride {} pad {} more {} dilation {}", kernel, stride, padding, more, dilation));
      }
  CHECK(fit > 120);
}

TEST_CASE("memory of activations falls with the number of slabs", "[split][space][dense]") {
  const Graph graph = unet({1, 32, 8, 8}, {4, 8}, "auto");
  const auto one = static_cast<double>(most_activations(train_split(run_of(graph, 1, 1, "reference"))));
  for (const int spatial_shards : {2, 4}) {
    const auto most = static_cast<double>(most_activations(train_split(run_of(graph, spatial_shards, 1, "reference"))));
    INFO(spatial_shards << " slabs: " << most << " of " << one);
    CHECK(most < 1.35 * one / spatial_shards);
  }
}

}  // namespace echelon
