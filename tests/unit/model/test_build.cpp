// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "model/build.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/support/refusal.hpp"

using namespace echelon;
using Catch::Matchers::Contains;

namespace {

LayerConfig layer(const std::string& type, int line = 7) {
  LayerConfig config;
  config.type = type;
  config.where = "net.toml:" + std::to_string(line);
  return config;
}

LayerConfig conv(std::int64_t channels, std::vector<std::int64_t> kernel) {
  LayerConfig config = layer("conv");
  config.channels = channels;
  config.kernel = std::move(kernel);
  return config;
}

LayerConfig dense(std::int64_t units) {
  LayerConfig config = layer("dense", 9);
  config.units = units;
  return config;
}

std::string refusal(const std::vector<LayerConfig>& layers, const Shape& input = {3, 8, 8}) {
  return test::refusal<ConfigError>([&] { build_layers(layers, labelled(input, 10)); });
}

}  // namespace

TEST_CASE("a list of layers becomes a graph with its loss", "[model]") {
  LayerConfig named = conv(4, {3, 1});
  named.name = "stem";
  const Graph graph =
      build_layers({named, layer("relu"), layer("relu"), layer("flatten"), dense(10)}, labelled({3, 8, 8}, 10));
  CHECK(graph.value_names() == std::vector<std::string>{"samples", "labels", "weights", "stem", "relu1", "relu2",
                                                        "flatten1", "dense1", "loss"});
  CHECK(graph.values()[3].shape == Shape{4, 6, 8});
  CHECK(graph.values()[6].shape == Shape{192});
  CHECK(graph.loss() == 5);
  const ParameterSet& p = graph.parameters();
  REQUIRE(p.size() == 4);
  CHECK(p[0].name == "stem.weight");
  CHECK(p[0].shape == Shape{4, 3, 3, 1});
  CHECK(p[0].init.scale == Approx(1.0 / 3));  // fan in is 3*3*1
  CHECK(p[0].decays);
  CHECK_FALSE(p[1].decays);
  CHECK(p[3].name == "dense1.bias");
  CHECK_FALSE(graph.values()[0].wants_gradient);
  CHECK(graph.values()[3].wants_gradient);
}

TEST_CASE("shapes that do not fit are refused with place, layer, extent and what fits", "[model]") {
  CHECK_THAT(refusal({conv(4, {9})}), Contains("net.toml:7: layer 'conv1' (conv): the window covers 9 rows") &&
                                          Contains("padded input has only 8") && Contains("a kernel of at most 8") &&
                                          Contains("padding of at least 1"));
  CHECK_THAT(refusal({conv(4, {2, 10})}), Contains("10 columns"));
  LayerConfig dilated = conv(4, {5});
  dilated.dilation = {2};
  CHECK_THAT(refusal({dilated}), Contains("the window covers 9 rows") && Contains("a kernel of at most 4"));
  LayerConfig grouped = conv(4, {3});
  grouped.groups = 2;
  CHECK_THAT(refusal({grouped}), Contains("groups = 2 must divide the 3 input and the 4 output channels"));
  CHECK_THAT(refusal({dense(4)}), Contains("net.toml:9: layer 'dense1'") && Contains("its input is (3, 8, 8)") &&
                                      Contains("flatten layer before it"));
  CHECK_THAT(refusal({layer("flatten"), conv(4, {3})}),
             Contains("images (channels, rows, columns)") && Contains("(192)"));
  CHECK_THAT(refusal({layer("flatten"), dense(7)}),
             Contains("has 7 outputs but the data has 10 classes") && Contains("use units = 10"));
  CHECK_THAT(refusal({conv(4, {3})}), Contains("end with a dense layer of units = 10"));
  CHECK_THAT(refusal({}), Contains("no layers"));
}

TEST_CASE("windows over one, two and three axes", "[model]") {
  LayerConfig deep = conv(4, {3, 2, 1});
  deep.stride = {2}, deep.padding = {1, 0, 0};
  const Graph volumes = build_layers({deep, layer("flatten"), dense(10)}, labelled({3, 8, 7, 6}, 10));
  CHECK(volumes.values()[3].shape == Shape{4, 4, 3, 3});
  CHECK(volumes.parameters()[0].shape == Shape{4, 3, 3, 2, 1});
  CHECK_THAT(model_table(volumes, DType::f32), Contains("4 3x2x1 stride 2 pad 1x0x0"));
  LayerConfig cube = conv(4, {3});
  cube.padding = {1};
  CHECK_THAT(model_table(build_layers({cube, layer("flatten"), dense(10)}, labelled({3, 8, 7, 6}, 10)), DType::f32),
             Contains("4 3x3x3 pad 1") && Contains("(4, 8, 7, 6)"));
  const Graph series =
      build_layers({cube, layer("global_avg_pool"), layer("flatten"), dense(10)}, labelled({3, 9}, 10));
  CHECK(series.values()[3].shape == Shape{4, 9});
  CHECK(series.values()[4].shape == Shape{4, 1});
  CHECK(series.parameters()[0].shape == Shape{4, 3, 3});
  CHECK_THAT(refusal({deep}), Contains("kernel has 3 numbers") && Contains("2 spatial axes; give one number, or 2"));
  CHECK_THAT(refusal({conv(4, {3, 2})}, {3, 8, 7, 6}), Contains("3 spatial axes; give one number, or 3"));
  CHECK_THAT(refusal({conv(4, {1, 9, 1})}, {3, 8, 7, 6}), Contains("the window covers 9 rows"));
  CHECK_THAT(refusal({conv(4, {9, 1, 1})}, {3, 8, 7, 6}), Contains("the window covers 9 slices"));
  CHECK_THAT(refusal({conv(4, {1, 1, 1, 1})}), Contains("kernel has 4 numbers"));
  LayerConfig pool = layer("max_pool");
  pool.kernel = {2, 2, 3}, pool.padding = {1, 2, 1};
  CHECK_THAT(refusal({pool}, {3, 8, 7, 6}), Contains("padding 1x2x1 must be smaller than the kernel 2x2x3"));
  LayerConfig bent = layer("elu");
  bent.alpha = -1;
  CHECK_THAT(refusal({bent}), Contains("alpha = -1 must be at least 0"));
}

TEST_CASE("inputs by name: unknown, unequal, unused, for the loss alone", "[model]") {
  LayerConfig first = conv(4, {3}), sum = layer("add", 12);
  first.name = "first";
  sum.inputs = {"frist", "first"};
  CHECK_THAT(refusal({first, sum}),
             Contains("net.toml:12: layer 'add1' (add): unknown input 'frist' (did you mean 'first'?)"));
  sum.inputs = {"first", "samples"};
  CHECK_THAT(refusal({first, sum}), Contains("(4, 6, 6) and (3, 8, 8): the numbers of channels differ (4 and 3)"));
  sum.inputs = {"first"};
  CHECK_THAT(refusal({first, sum}), Contains("an add layer takes at least 2 inputs, but 1 is given"));
  LayerConfig both = layer("concat");
  both.inputs = {"first", "samples"};
  CHECK_THAT(refusal({first, both}), Contains("differ only in their channels") && Contains("(3, 8, 8)"));
  LayerConfig light = layer("dropout");
  light.inputs = {"first", "first"};
  CHECK_THAT(refusal({first, light}), Contains("takes 1 input, but 2 are given"));
  sum.inputs = {"first", "labels"};
  CHECK_THAT(refusal({first, sum}), Contains("'labels' cannot be given in inputs: only the loss reads it"));
  LayerConfig other = conv(4, {3}), flat = layer("flatten");
  flat.inputs = {"first"};
  CHECK_THAT(refusal({first, other, flat, dense(10)}),
             Contains("layer 'conv2' (conv): no later layer reads its output"));
  CHECK_THAT(refusal({first, first}), Contains("already has this name"));
}

TEST_CASE("pools refuse padding as large as the kernel", "[model]") {
  LayerConfig pool = layer("max_pool");
  pool.kernel = {2}, pool.padding = {2};
  CHECK_THAT(refusal({pool}), Contains("padding 2x2 must be smaller than the kernel 2x2"));
}

TEST_CASE("the zoo's models have their published sizes", "[model]") {
  const Graph cnn = build_zoo("cnn_32_64", labelled({1, 28, 28}, 10));
  CHECK(cnn.parameters().weight_elems() == 421642);
  CHECK(cnn.values()[static_cast<std::size_t>(cnn.find("max_pool2"))].shape == Shape{64, 7, 7});
  const Graph lenet = build_zoo("lenet", labelled({1, 28, 28}, 10));  // LeNet-5
  CHECK(lenet.parameters().weight_elems() == 61706);
  CHECK(lenet.values()[static_cast<std::size_t>(lenet.find("avg_pool2"))].shape == Shape{16, 5, 5});
  CHECK(build_zoo("digits_cnn", labelled({1, 8, 8}, 10)).parameters().weight_elems() == 38282);
  CHECK_THROWS_WITH(build_zoo("lennet", labelled({1, 28, 28}, 10)), Contains("did you mean 'lenet'"));
  CHECK_THROWS_WITH(build_zoo("cnn_32_64", labelled({1, 3, 28}, 10)),
                    Contains("at least 4 x 4") && Contains("(1, 3, 28)"));
  struct Row {
    const char* name;
    std::int64_t parameters;
  };
  // The rows are bvlc_alexnet, configuration D, bvlc_googlenet; torchvision's resnet18, resnet50 and inception_v3
  // without its side branch; and resnet20 to 56 with projections.
  for (const Row& row :
       {Row{"alexnet", 60'965'224}, Row{"vgg16", 138'357'544}, Row{"googlenet", 6'998'552}, Row{"resnet18", 11'689'512},
        Row{"resnet50", 25'557'032}, Row{"resnet20", 272'474}, Row{"resnet32", 466'906}, Row{"resnet44", 661'338},
        Row{"resnet56", 855'770}, Row{"inception_v3", 23'834'568}}) {
    CAPTURE(row.name);
    CHECK(build_zoo(row.name, zoo_form(row.name)).parameters().weight_elems() == row.parameters);
  }
  const auto shape_in = [](const Graph& graph, const char* value) {
    return graph.values()[static_cast<std::size_t>(graph.find(value))].shape;
  };
  CHECK(shape_in(build_zoo("alexnet", labelled({3, 224, 224}, 1000)), "max_pool3") == Shape{256, 6, 6});
  CHECK(shape_in(build_zoo("googlenet", labelled({3, 224, 224}, 1000)), "concat9") == Shape{1024, 7, 7});
  const Graph inception = build_zoo("inception_v3", labelled({3, 299, 299}, 1000));
  CHECK(shape_in(inception, "concat3") == Shape{288, 35, 35});
  CHECK(shape_in(inception, "concat8") == Shape{768, 17, 17});
  CHECK(shape_in(inception, "concat11") == Shape{2048, 8, 8});
  CHECK(shape_in(build_zoo("resnet50", labelled({3, 224, 224}, 1000)), "add16") == Shape{2048, 7, 7});
  CHECK(shape_in(build_zoo("resnet20", labelled({1, 28, 28}, 10)), "add9") == Shape{64, 7, 7});
  CHECK_THROWS_WITH(build_zoo("alexnet", labelled({3, 62, 64}, 10)), Contains("at least 63 x 63"));
  CHECK(build_zoo("alexnet", labelled({3, 63, 63}, 10)).loss() > 0);
  CHECK(build_zoo("vgg16", labelled({3, 32, 32}, 10)).loss() > 0);
  CHECK(build_zoo("googlenet", labelled({1, 1, 1}, 3)).loss() > 0);
  CHECK(build_zoo("resnet50", labelled({1, 1, 1}, 3)).loss() > 0);
  ModelConfig both;
  both.zoo = "cnn_32_64";
  both.layers = {dense(3)};
  CHECK_THROWS_WITH(build_model(both, labelled({1, 28, 28}, 10)), Contains("cannot both be given"));
}

TEST_CASE("recurrent models of the zoo have as many weights as PyTorch's", "[model]") {
  const std::pair<const char*, std::int64_t> rows[] = {{"charlstm", 876929},
                                                       {"chargru", 662913},
                                                       {"wordlstm", 19780400},
                                                       {"sequence_classifier", 147721},
                                                       {"translation", 684096}};
  for (const auto& [name, parameters] : rows) {
    CAPTURE(name);
    CHECK(build_zoo(name, zoo_form(name)).parameters().weight_elems() == parameters);
  }
  CHECK_THROWS_WITH(build_zoo("charlstm", labelled({1, 28, 28}, 10)), Contains("charlstm takes texts"));
  CHECK_THROWS_WITH(build_zoo("translation", zoo_form("charlstm")), Contains("pairs of texts"));
  CHECK_THROWS_WITH(build_zoo("sequence_classifier", zoo_form("charlstm")), Contains("with one class each"));
}

TEST_CASE("transformer and ranking: weights by formula, and what they cannot take", "[model]") {
  const std::int64_t V = 65, T = 64, D = 128, H = 512;
  const std::int64_t block = 2 * 2 * D + 4 * D * D + 3 * D + (D * H + H) + (H * D + D);
  CHECK(build_zoo("transformer", zoo_form("transformer")).parameters().weight_elems() ==
        V * D + T * D + 2 * block + 2 * D + D * V + V);
  CHECK(build_zoo("ranking", zoo_form("ranking")).parameters().weight_elems() == 1'861'762);
  CHECK_THROWS_WITH(build_zoo("transformer", labelled({1, 28, 28}, 10)), Contains("language model"));
  CHECK_THROWS_WITH(build_zoo("ranking", zoo_form("charlstm")), Contains("one label per sample"));
}

TEST_CASE("the table counts parameters, FLOPs and bytes", "[model]") {
  const Graph graph = build_zoo("cnn_32_64", labelled({1, 28, 28}, 10));
  const ModelCosts costs = model_costs(graph, DType::f32);
  CHECK(costs.parameters == 421642);
  // Convolutions and dense layers take two flops per term; all else is at most a hundredth.
  const double products = 2.0 * (32.0 * 9 * 784 + 64.0 * 32 * 9 * 196 + 3136.0 * 128 + 128 * 10);
  CHECK(costs.forward_flops > products);
  CHECK(costs.forward_flops < 1.02 * products);
  // Backward computes weights of every layer, and data of all but the first.
  const double backward = 2 * products - 2.0 * 32 * 9 * 784;
  CHECK(costs.backward_flops > backward);
  CHECK(costs.backward_flops < 1.02 * backward);
  const std::string table = model_table(graph, DType::f32);
  CHECK_THAT(table, Contains("(64, 7, 7)") && Contains("421,642") && Contains("32 3x3 pad 1") && Contains("401,536"));
}
