// SPDX-License-Identifier: Apache-2.0
#include "tests/support/image_models.hpp"

#include <fmt/format.h>

#include "model/zoo/zoo.hpp"
#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

struct Windowed {
  std::vector<std::int64_t> kernel, stride = {}, padding = {}, dilation = {};
};

LayerConfig layer(const std::string& type, const std::string& name = "", const std::vector<std::string>& inputs = {}) {
  LayerConfig config;
  config.type = type;
  config.name = name;
  config.inputs = inputs;
  return config;
}

LayerConfig with(LayerConfig config, const Windowed& window) {
  config.kernel = window.kernel;
  config.stride = window.stride;
  config.padding = window.padding;
  config.dilation = window.dilation;
  return config;
}

LayerConfig conv(const std::string& name, std::int64_t channels, const Windowed& window,
                 const std::vector<std::string>& inputs = {}) {
  LayerConfig config = with(layer("conv", name, inputs), window);
  config.channels = channels;
  return config;
}

// Before batch norm the gradient of a bias is 0, which leaves no digits to compare.
LayerConfig bare(LayerConfig config) {
  config.bias = false;
  return config;
}

LayerConfig pool(const std::string& type, const std::string& name, const Windowed& window,
                 const std::vector<std::string>& inputs = {}) {
  return with(layer(type, name, inputs), window);
}

LayerConfig head() {
  LayerConfig config = layer("dense", "head");
  config.units = 5;
  return config;
}

Graph of(std::vector<LayerConfig> layers, const Shape& image, ModelConfig model = {}) {
  model.layers = std::move(layers);
  return build_model(model, labelled(image, 5));
}

Graph shrunken(const std::string& zoo, const Shape& image) {
  std::vector<LayerConfig> layers = zoo_layers(zoo, labelled(image, 5));
  for (LayerConfig& each : layers) {
    each.channels /= 4;
    if (each.units != 5) each.units /= 4;
  }
  return build_layers(layers, labelled(image, 5));
}

}  // namespace

Graph small_inception() {
  LayerConfig drop = layer("dropout", "drop"), lrn = layer("lrn", "lrn"),
              mean = pool("avg_pool", "mean", {{3}, {1}, {1}});
  drop.rate = 0.25, lrn.size = 3, mean.count_padding = true;
  mean.inputs = {"drop"};
  return of({bare(conv("stem", 4, {{3}, {2}, {1}})),
             layer("batch_norm", "norm"),
             layer("relu", "bent"),
             lrn,
             conv("one", 2, {{1}}, {"lrn"}),
             layer("relu", "one_bent"),
             conv("three_in", 2, {{1}}, {"lrn"}),
             bare(conv("three", 3, {{3}, {1}, {1}})),
             layer("batch_norm", "three_norm"),
             conv("five_in", 2, {{1}}, {"lrn"}),
             conv("five", 2, {{5}, {1}, {2}}),
             layer("relu", "five_bent"),
             pool("max_pool", "most", {{3}, {1}, {1}}, {"lrn"}),
             conv("pooled", 2, {{1}}),
             layer("concat", "joined", {"one_bent", "three_norm", "five_bent", "pooled"}),
             drop,
             mean,
             conv("low", 3, {{3}, {2}, {1}}, {"joined"}),
             pool("max_pool", "low_most", {{3}, {2}, {1}}, {"mean"}),
             layer("concat", "ends", {"low", "low_most"}),
             layer("global_avg_pool", "all"),
             layer("flatten"),
             head()},
            Shape{2, 19, 7});
}

Graph small_windows() {
  LayerConfig groups = conv("groups", 4, {{3}, {1}, {1}});
  groups.groups = 2;
  return of({conv("wide", 4, {{5, 3}, {1}, {0, 1}}), layer("tanh"), pool("max_pool", "lap", {{3}, {2}, {1}}), groups,
             layer("sigmoid"), conv("apart", 4, {{3}, {1}, {2}, {2}}), pool("avg_pool", "mean", {{2}, {1}}),
             conv("skips", 4, {{1}, {2}}), layer("gelu"), layer("flatten"), head()},
            Shape{2, 23, 6});
}

Graph small_volumes() {
  LayerConfig drop = layer("dropout", "drop");
  drop.rate = 0.25;
  return of({bare(conv("stem", 3, {{3, 3, 2}, {1}, {1, 1, 0}})), layer("batch_norm", "norm"), layer("relu", "bent"),
             pool("max_pool", "most", {{3, 2, 2}, {2, 1, 1}, {1, 0, 0}}), drop,
             conv("apart", 2, {{3, 1, 2}, {1}, {2, 0, 0}, {2, 1, 1}}, {"drop"}),
             conv("near", 2, {{3, 1, 2}, {1}, {1, 0, 0}}, {"drop"}), layer("concat", "joined", {"apart", "near"}),
             pool("avg_pool", "mean", {{2}, {2, 1, 1}}), layer("tanh"), layer("flatten"), head()},
            Shape{2, 19, 5, 6});
}

Graph small_torn_rows() {
  return of({conv("first", 3, {{3}, {1}, {1}}), layer("relu", "bent"), conv("odd", 2, {{3}, {2}}, {"bent"}),
             pool("max_pool", "even", {{2, 3}, {2}}, {"bent"}), layer("concat", "joined", {"odd", "even"}),
             layer("flatten"), head()},
            Shape{2, 17, 7});
}

Graph tall_cnn() { return shrunken("cnn_32_64", {1, 17, 8}); }
Graph tall_resnet20() { return shrunken("resnet20", {3, 16, 8}); }

Graph tall_dropout_net() {
  LayerConfig light = layer("dropout", "light"), units = layer("dense", "units"), late = layer("dropout", "late");
  light.rate = 0.25;
  units.units = 12;
  return of({conv("conv1", 4, {{3}, {1}, {1}}), layer("relu"), light, conv("conv2", 3, {{3}, {1}, {1}}),
             layer("flatten"), units, layer("relu"), late, head()},
            Shape{2, 7, 5});
}

std::string WindowCase::text() const {
  return fmt::format("{} {} stride {} pad {} -> {}", type, kernel, stride, padding, outputs);
}

LayerConfig window_layer(const WindowCase& window) {
  const auto columns = random_integers(3, 0, 1, window.text());
  const std::int64_t width = 1 + 2 * columns[0];
  const Windowed sizes{
      {window.kernel, width}, {window.stride, 1 + columns[1]}, {window.padding, columns[0] * columns[2]}};
  if (window.type == "conv") return conv("window", 3, sizes);
  LayerConfig made = pool(window.type == "max_pool" ? "max_pool" : "avg_pool", "window", sizes);
  made.count_padding = window.type == "avg_pool counted";
  return made;
}

Graph one_window(const WindowCase& window) {
  const std::int64_t left = random_integers(1, 0, window.stride - 1, window.text() + " left")[0];
  const std::int64_t rows = (window.outputs - 1) * window.stride + window.kernel - 2 * window.padding + left;
  return of({conv("before", 3, {{3}, {1}, {1}}), layer("relu"), window_layer(window), layer("tanh"), layer("flatten"),
             head()},
            Shape{2, rows, 5});
}

Graph random_windows(std::string_view name) {
  const char* const types[] = {"conv", "max_pool", "avg_pool", "avg_pool counted"};
  const auto numbers = random_integers(8, 0, 1000, name);
  const std::int64_t stride = 1 + numbers[0] % 3;
  // Kernels have odd sizes and half of the size as padding, so that both layers have the same rows.
  const auto one_of = [&](std::size_t at, std::int64_t stride_of, const std::string& as) {
    const std::int64_t kernel = 1 + 2 * (numbers[at] % 3);
    WindowCase window{types[numbers[at + 1] % 4], kernel, stride_of, (kernel - 1) / 2};
    LayerConfig made = window_layer(window);
    made.name = as, made.kernel[1] = 1, made.stride[1] = 1, made.padding[1] = 0;
    return made;
  };
  LayerConfig left = one_of(1, stride, "left"), right = one_of(3, stride, "right");
  left.inputs = right.inputs = {"bent"};
  return of({conv("before", 2, {{3}, {1}, {1}}), layer("tanh", "bent"), left, right,
             layer("concat", "both", {"left", "right"}), one_of(5, 1 + numbers[7] % 2, "behind"), layer("tanh"),
             layer("flatten"), head()},
            Shape{2, 28 + numbers[7] % 13, 4});
}

Graph random_volumes(std::string_view name) {
  const auto n = random_integers(9, 0, 1000, name);
  const std::int64_t kernel = 1 + n[0] % 4, wide = 1 + n[1] % 3, dilation = 1 + n[2] % 2;
  return of(
      {bare(conv("before", 2 + n[3] % 2, {{kernel, 2, 1}, {1 + n[4] % 2, 1, 2}, {kernel / 2, 0, 0}})),
       layer("batch_norm"), layer("relu"),
       pool(n[5] % 2 == 0 ? "max_pool" : "avg_pool", "middle", {{wide, 1, 2}, {1 + n[6] % 2, 1, 1}, {wide / 2, 0, 0}}),
       conv("behind", 3, {{2, 2, 1}, {1}, {1, 0, 0}, {dilation, 1, 1}}), layer("tanh"), layer("flatten"), head()},
      Shape{1 + n[7] % 2, 22 + n[8] % 11, 4, 4});
}

Graph tall_batch_norm_net(const ModelConfig& norms) {
  return of({bare(conv("conv1", 4, {{3}, {1}, {1}})), layer("batch_norm", "norm1"), layer("relu", "bent"),
             bare(conv("conv2", 4, {{3}, {1}, {1}})), layer("batch_norm", "norm2"),
             layer("add", "sum", {"norm2", "bent"}), layer("relu"), layer("flatten"), head()},
            Shape{2, 7, 5}, norms);
}

}  // namespace echelon::test
