// SPDX-License-Identifier: Apache-2.0
// Models of the zoo for images and volumes of science: their published sizes, model.widths, and what they cannot take.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "model/build.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/support/refusal.hpp"

using namespace echelon;
using Catch::Matchers::Contains;

namespace {

SampleForm classes_of(const Shape& sample, std::int64_t classes) {
  return {.shape = sample, .label = sample.without_front(), .classes = classes, .dense = true};
}

Graph built(const std::string& zoo, const SampleForm& form, std::vector<std::int64_t> widths = {},
            const std::string& loss = "auto") {
  ModelConfig config;
  config.zoo = zoo, config.widths = std::move(widths), config.loss = loss;
  return build_model(config, form);
}

std::int64_t parameters(const Graph& graph) { return graph.parameters().weight_elems(); }
Shape shape_in(const Graph& graph, const char* value) {
  return graph.values()[static_cast<std::size_t>(graph.find(value))].shape;
}

std::string refused(const std::string& zoo, const SampleForm& form, std::vector<std::int64_t> widths = {}) {
  return test::refusal<ConfigError>([&] { built(zoo, form, widths); });
}

}  // namespace

TEST_CASE("models of images and volumes have their published sizes", "[model]") {
  // github.com/milesial/Pytorch-UNet and github.com/mateuszbuda/brain-segmentation-pytorch, each with one plane.
  const SampleForm scan = classes_of({3, 256, 256}, 2);
  CHECK(parameters(built("unet", scan, {}, "bce")) == 31'037'633);
  CHECK(parameters(built("unet", scan, {32, 64, 128, 256, 512}, "bce")) == 7'763'041);
  CHECK(parameters(build_zoo("unet", zoo_form("unet"))) == 31'037'698);
  // Cicek et al. count 19,069,955, without scales of batch norm and biases of transposed convolutions.
  const Graph volumes = built("unet", classes_of({3, 16, 24, 8}, 3));
  CHECK(parameters(volumes) == 19'069'955 + 2'336 + 896);
  CHECK(shape_in(volumes, "relu8") == Shape{512, 2, 3, 1});
  CHECK(parameters(build_zoo("cosmoflow", zoo_form("cosmoflow"))) == 8'907'556);
  CHECK(shape_in(build_zoo("cosmoflow", zoo_form("cosmoflow")), "max_pool5") == Shape{512, 4, 4, 4});
  CHECK(parameters(build_zoo("resnet18_cifar", zoo_form("resnet18_cifar"))) == 11'173'962);
  const Graph deepcam = build_zoo("deepcam", zoo_form("deepcam"));
  CHECK(parameters(deepcam) == 56'454'720);
  CHECK(shape_in(deepcam, "concat1") == Shape{1280, 48, 72});
  CHECK(shape_in(deepcam, "conv_transpose4") == Shape{3, 768, 1152});
}

TEST_CASE("model.widths gives levels of unet and cosmoflow, model.dropout the rate of all dropout layers", "[model]") {
  const Graph flat = built("unet", classes_of({1, 5, 7}, 3), {4});
  CHECK(shape_in(flat, "conv3") == Shape{3, 5, 7});
  CHECK(shape_in(built("unet", classes_of({1, 6, 2}, 3), {4, 9}), "relu4") == Shape{9, 3, 1});
  CHECK(shape_in(built("unet", {.shape = {2, 8, 4}, .label = {5, 8, 4}}, {4, 9}), "conv7") == Shape{5, 8, 4});
  CHECK(shape_in(built("unet", {.shape = {2, 8, 4}, .label = {8, 4}}, {4, 9}), "conv7") == Shape{1, 8, 4});
  CHECK(shape_in(built("cosmoflow", {.shape = {1, 4, 4, 5}, .label = {2}}, {3, 6}), "scale1") == Shape{2});
  CHECK(shape_in(built("cosmoflow", {.shape = {1, 4, 4, 5}}, {3, 6}), "scale1") == Shape{1});
  ModelConfig config;
  config.zoo = "cosmoflow", config.dropout = 0.125;
  CHECK_THAT(model_table(build_model(config, zoo_form("cosmoflow")), DType::f32), Contains("rate 0.125"));
  config.zoo = "resnet20";
  CHECK_THROWS_WITH(build_model(config, zoo_form("resnet20")), Contains("no dropout layer"));
}

TEST_CASE("models of images and volumes refuse samples that do not fit", "[model]") {
  CHECK_THAT(refused("unet", classes_of({3, 100, 96}, 2)),
             Contains("multiples of 16") && Contains("(3, 100, 96)") && Contains("nearest valid: 96 or 112"));
  CHECK_THAT(refused("unet", classes_of({3, 8, 3}, 2), {4, 8, 16}), Contains("nearest valid: 4,"));
  CHECK_THAT(refused("unet", labelled({3, 32, 32}, 10)), Contains("for every place") && Contains("labels ()"));
  CHECK_THAT(refused("unet", {.shape = {3, 32, 32}, .label = {16, 16}}), Contains("labels (16, 16)"));
  CHECK_THAT(refused("cosmoflow", labelled({4, 128, 128, 128}, 10)), Contains("labels of 10 classes"));
  CHECK_THAT(refused("cosmoflow", {.shape = {4, 31, 32, 32}, .label = {4}}), Contains("at least 32 x 32 x 32"));
  CHECK_THAT(refused("deepcam", classes_of({16, 760, 1152}, 3)), Contains("multiples of 16"));
  CHECK_THAT(refused("deepcam", labelled({16, 768, 1152}, 3)), Contains("a class for every pixel"));
  CHECK_THAT(refused("resnet18_cifar", labelled({8}, 3)), Contains("(3, 32, 32)"));
}
