// SPDX-License-Identifier: Apache-2.0
#include "tests/support/layer_rows.hpp"

namespace echelon::test {
namespace {

LayerConfig layer(const std::string& type, const std::string& name = {}, const std::vector<std::string>& inputs = {}) {
  LayerConfig config;
  config.type = type;
  config.name = name;
  config.inputs = inputs;
  return config;
}

LayerConfig conv(std::int64_t channels, std::vector<std::int64_t> kernel, const std::string& name = {},
                 const std::vector<std::string>& inputs = {}) {
  LayerConfig config = layer("conv", name, inputs);
  config.channels = channels;
  config.kernel = std::move(kernel);
  return config;
}

LayerConfig pool(const std::string& type, std::vector<std::int64_t> kernel, std::vector<std::int64_t> stride,
                 std::vector<std::int64_t> padding, bool count_padding = false) {
  LayerConfig config = layer(type);
  config.kernel = std::move(kernel);
  config.stride = std::move(stride);
  config.padding = std::move(padding);
  config.count_padding = count_padding;
  return config;
}

LayerConfig dense(std::int64_t units, bool bias = true) {
  LayerConfig config = layer("dense");
  config.units = units;
  config.bias = bias;
  return config;
}

LayerConfig lrn(std::int64_t size, double alpha, double beta) {
  LayerConfig config = layer("lrn");
  config.size = size;
  config.alpha = alpha;
  config.beta = beta;
  return config;
}

LayerConfig recurrent(const std::string& type, std::int64_t units, const std::string& name = {},
                      const std::vector<std::string>& inputs = {}) {
  LayerConfig config = layer(type, name, inputs);
  config.units = units;
  return config;
}
LayerConfig reversed(LayerConfig config) {
  config.reverse = true;
  return config;
}

SampleForm image(std::int64_t channels, std::int64_t rows, std::int64_t columns) {
  return labelled({channels, rows, columns}, kClasses);
}

SampleForm volume(std::int64_t channels, const Shape& extents) {
  return labelled({channels, extents[0], extents[1], extents[2]}, kClasses);
}

// Series of several channels, whose positions are a spatial axis.
SampleForm series_of(std::int64_t channels, std::int64_t steps) { return labelled({channels, steps}, kClasses); }

LayerConfig with_number(LayerConfig config, double LayerConfig::*key, double value) {
  config.*key = value;
  return config;
}

SampleForm sequence(std::int64_t places, std::int64_t features, bool lengths = false) {
  SampleForm form = labelled({places, features}, kClasses);
  form.lengths = lengths;
  return form;
}

// Samples whose labels are numbers, one or several per sample.
SampleForm numbers(std::int64_t features, const Shape& label, std::int64_t classes = 0) {
  return {.shape = {features, 1, 1}, .label = label, .classes = classes};
}

LayerConfig named_dense(std::int64_t units, const std::string& name, const std::string& input) {
  LayerConfig config = dense(units);
  config.name = name;
  config.inputs = {input};
  return config;
}

LayerConfig attention(std::int64_t heads, bool causal) {
  LayerConfig config = layer("attention", "seen", {"q", "k", "v"});
  config.heads = heads;
  config.causal = causal;
  return config;
}

LayerConfig sequence_pool(const std::string& mode) {
  LayerConfig config = layer("sequence_pool");
  config.mode = mode;
  return config;
}

std::vector<LayerConfig> attended(std::int64_t heads, bool causal) {
  return {named_dense(6, "q", "samples"), named_dense(6, "k", "samples"), named_dense(6, "v", "samples"),
          attention(heads, causal), layer("tanh")};
}

LayerConfig sparse(LayerConfig config) {
  config.sparse = true;
  return config;
}

LayerConfig transposed(LayerConfig conv) {
  conv.type = "conv_transpose";
  return conv;
}

LayerConfig upsampled(const std::string& mode, std::vector<std::int64_t> factor) {
  LayerConfig config = layer("upsample");
  config.mode = mode;
  config.factor = std::move(factor);
  return config;
}

std::vector<LayerRow> rows_of_other_axes() {
  LayerConfig deep = conv(4, {3, 2, 2}), cube = conv(3, {2}), long_one = conv(6, {3});
  deep.stride = {2, 1, 1}, deep.padding = {1, 0, 2}, deep.dilation = {1, 2, 1}, deep.groups = 2;
  long_one.stride = {2}, long_one.padding = {2}, long_one.dilation = {2}, long_one.groups = 3;
  LayerConfig same = conv(3, {3}, "first");
  same.padding = {1};
  LayerConfig wide = transposed(conv(4, {3, 2})), deep_wide = transposed(conv(3, {2})), bare = wide;
  wide.stride = {2, 3}, wide.padding = {1, 0}, wide.output_padding = {1, 2}, wide.groups = 2;
  deep_wide.stride = {2, 1, 2}, bare.bias = false, bare.dilation = {1, 2};
  return {
      {"conv_transpose", image(2, 3, 4), {conv(2, {1}), wide}},
      {"conv_transpose without bias", image(3, 3, 4), {conv(2, {2}), bare, layer("relu")}},
      {"conv_transpose of volumes", volume(2, {2, 3, 2}), {conv(3, {1}), deep_wide, layer("tanh")}},
      {"conv_transpose of series", series_of(3, 6), {conv(2, {2}), transposed(conv(3, {4}))}},
      {"upsample nearest", image(2, 3, 4), {conv(3, {2}), upsampled("nearest", {2, 3}), layer("tanh")}},
      {"upsample linear", image(2, 3, 4), {conv(3, {2}), upsampled("linear", {3, 2}), layer("tanh")}},
      {"upsample of volumes", volume(2, {2, 3, 3}), {deep_wide, upsampled("linear", {2, 1, 3}), layer("tanh")}},
      {"upsample of series", series_of(2, 6), {conv(3, {2}), upsampled("linear", {4}), layer("tanh")}},
      {"conv of volumes", volume(2, {5, 4, 6}), {cube, conv(4, {1}), deep}},
      {"max_pool of volumes",
       volume(2, {6, 5, 4}),
       {cube, pool("max_pool", {2, 3, 2}, {1, 2, 1}, {1, 0, 1}), layer("relu")}},
      {"avg_pool of volumes", volume(2, {5, 4, 4}), {cube, pool("avg_pool", {3, 2, 2}, {2, 1, 1}, {1}, true)}},
      {"global_avg_pool of volumes", volume(2, {4, 3, 5}), {cube, layer("tanh"), layer("global_avg_pool")}},
      {"batch_norm of volumes", volume(2, {4, 3, 5}), {cube, layer("batch_norm"), layer("relu")}},
      {"lrn of volumes", volume(2, {3, 4, 3}), {conv(5, {2}), lrn(3, 0.9, 0.75), layer("tanh")}},
      {"concat and add of volumes",
       volume(2, {3, 4, 3}),
       {same, layer("tanh", "t"), layer("concat", "both", {"t", "samples", "first"}), layer("dropout"),
        layer("add", "sum", {"dropout1", "both"})}},
      {"conv of series", series_of(2, 11), {conv(3, {4}), layer("tanh"), long_one}},
      {"pools and batch_norm of series",
       series_of(3, 12),
       {conv(4, {3}), layer("batch_norm"), layer("relu"), pool("max_pool", {3}, {2}, {1}), layer("tanh"),
        pool("avg_pool", {2}, {}, {}), layer("global_avg_pool")}},
  };
}

std::vector<LayerRow> recurrent_rows() {
  const SampleForm text{.shape = {5}, .vocabulary = 7, .label = {5}, .classes = kClasses};
  const SampleForm series{.shape = {5, 3}, .classes = kClasses, .lengths = true};
  const SampleForm pairs{
      .shape = {4}, .vocabulary = 6, .label = {5}, .classes = kClasses, .lengths = true, .target = 5};
  LayerConfig bent = recurrent("rnn", 6);
  bent.activation = "relu";
  const SampleForm words{.shape = {5}, .vocabulary = kClasses, .label = {5}, .classes = kClasses};
  LayerConfig tied = dense(kClasses);
  tied.weights_of = "table";
  return {
      {"embedding", text, {recurrent("embedding", 3), dense(kClasses)}},
      {"sparse embedding", text, {sparse(recurrent("embedding", 3)), dense(kClasses)}},
      {"weights of an embedding", words, {recurrent("embedding", 3, "table"), recurrent("lstm", 3), tied}},
      {"rnn", text, {recurrent("embedding", 3), recurrent("rnn", 4), bent, dense(kClasses)}},
      {"lstm", text, {recurrent("embedding", 3), recurrent("lstm", 4), recurrent("lstm", 5), dense(kClasses)}},
      {"gru", text, {recurrent("embedding", 3), recurrent("gru", 5), reversed(recurrent("gru", 4)), dense(kClasses)}},
      {"last states of both directions",
       series,
       {recurrent("lstm", 4, "on", {"samples"}), reversed(recurrent("lstm", 3, "back", {"samples"})),
        layer("concat", "both", {"on.1", "back.1", "back.2"}), dense(kClasses)}},
      {"a bidirectional stack",
       series,
       {recurrent("gru", 4, "on", {"samples"}), reversed(recurrent("rnn", 3, "back", {"samples"})),
        layer("concat", "both", {"on", "back"}), recurrent("lstm", 4, "top"),
        layer("concat", "ends", {"top.1", "on.1"}), dense(kClasses)}},
      {"encoder and decoder",
       pairs,
       {recurrent("embedding", 3, "source", {"samples"}), recurrent("lstm", 4, "encoder"),
        recurrent("embedding", 2, "fed", {"target"}),
        recurrent("lstm", 4, "decoder", {"fed", "encoder.1", "encoder.2"}), dense(kClasses)}},
      {"a state for two decoders",
       pairs,
       {recurrent("embedding", 3, "source", {"samples"}), recurrent("gru", 4, "encoder"),
        recurrent("embedding", 2, "fed", {"target"}), recurrent("gru", 4, "one", {"fed", "encoder.1"}),
        recurrent("rnn", 4, "two", {"fed", "encoder.1"}), layer("add", "sum", {"one", "two"}), dense(kClasses)}},
  };
}

}  // namespace

std::vector<LayerRow> layer_rows() {
  LayerConfig general = conv(6, {3, 2});
  general.stride = {2, 1}, general.padding = {1, 2}, general.dilation = {1, 2}, general.groups = 2,
  general.bias = false;
  LayerConfig padded = conv(3, {3}, "body", {"first"});
  padded.padding = {1};
  LayerConfig same = conv(3, {3}, "first");
  same.padding = {1};
  LayerConfig again = padded;
  again.name = "again", again.inputs = {"r"};
  LayerConfig renorm = layer("batch_norm");  // every channel reaches these bounds, so the correction is constant
  renorm.renorm = true, renorm.r_max = 1 + 1e-6, renorm.d_max = 1e-9;
  LayerConfig synchronised = layer("batch_norm"), both = renorm;
  synchronised.synchronised = both.synchronised = true;
  const auto after_conv = [](const LayerConfig& tested) { return std::vector{conv(3, {2}), tested}; };
  std::vector<LayerRow> rows = {
      {"conv", image(2, 6, 5), {conv(3, {3, 2})}},
      {"conv general", image(2, 7, 6), {conv(4, {2}), general}},
      {"max_pool", image(2, 6, 7), after_conv(pool("max_pool", {2, 3}, {1, 2}, {1, 0}))},
      {"avg_pool inside", image(2, 6, 7), after_conv(pool("avg_pool", {3, 2}, {2, 1}, {1}))},
      {"avg_pool all", image(2, 6, 7), after_conv(pool("avg_pool", {3}, {2}, {1}, true))},
      {"dense", image(5, 1, 1), {layer("flatten"), dense(6), dense(kClasses, false)}},
      {"relu", image(2, 5, 4), after_conv(layer("relu"))},
      {"tanh", image(2, 5, 4), after_conv(layer("tanh"))},
      {"sigmoid", image(2, 5, 4), after_conv(layer("sigmoid"))},
      {"gelu", image(2, 5, 4), after_conv(layer("gelu"))},
      {"leaky_relu", image(2, 5, 4), after_conv(with_number(layer("leaky_relu"), &LayerConfig::slope, 0.2))},
      {"elu", image(2, 5, 4), after_conv(with_number(layer("elu"), &LayerConfig::alpha, 0.7))},
      {"softplus", image(2, 5, 4), after_conv(layer("softplus"))},
      {"scale", image(2, 5, 4), after_conv(with_number(layer("scale"), &LayerConfig::alpha, 1.5))},
      {"gelu of samples", image(5, 1, 1), {layer("gelu", "g", {"samples"}), layer("flatten"), dense(kClasses)}},
      {"global_avg_pool", image(2, 6, 5), {conv(5, {2}), layer("tanh"), layer("global_avg_pool")}},
      {"layer_norm", image(2, 5, 4), {conv(3, {2}), layer("layer_norm"), layer("tanh")}},
      {"layer_norm of features", image(6, 1, 1), {layer("flatten"), dense(5), layer("layer_norm"), dense(kClasses)}},
      {"lrn", image(2, 5, 4), {conv(9, {2}), lrn(3, 0.9, 0.75), layer("tanh")}},
      {"lrn even", image(2, 5, 4), {conv(6, {2}), lrn(4, 1.5, 0.5), layer("tanh")}},
      {"dropout", image(2, 5, 4), {conv(3, {2}), layer("dropout"), layer("tanh")}},
      {"dropout of features", image(6, 1, 1), {layer("flatten"), dense(9), layer("dropout"), dense(kClasses)}},
      {"dropout of samples", image(6, 1, 1), {layer("dropout"), layer("flatten"), dense(kClasses)}},
      {"concat", image(2, 4, 4), {same, padded, layer("concat", "both", {"body", "first"}), layer("tanh")}},
      {"concat with the samples and itself",
       image(2, 4, 4),
       {same, layer("tanh", "t"), layer("concat", "all", {"samples", "t", "first", "t"}), layer("sigmoid")}},
      {"concat of many",
       image(2, 4, 4),
       {same, layer("tanh", "t"),
        layer("concat", "all", {"t", "first", "t", "samples", "first", "t", "first", "t", "first", "samples"}),
        layer("sigmoid")}},
      {"concat of features",
       image(5, 1, 1),
       {layer("flatten", "flat"), dense(6), layer("tanh", "t"), layer("concat", "both", {"t", "flat"}), dense(4)}},
      {"concat of blocks",
       image(2, 4, 4),
       {conv(16, {3}, "a"), conv(8, {3}, "b", {"samples"}), conv(24, {3}, "c", {"samples"}),
        layer("concat", "abc", {"a", "b", "c"}), layer("tanh")}},
      {"add of four",
       image(2, 4, 4),
       {same, padded, layer("tanh", "t"), layer("add", "sum", {"body", "first", "t", "body"}), layer("tanh")}},
      {"batch_norm", image(2, 5, 4), after_conv(layer("batch_norm"))},
      {"batch_norm and relu", image(2, 5, 4), {conv(3, {2}), layer("batch_norm"), layer("relu")}},
      {"batch_norm and relu of samples", image(2, 5, 4), {layer("batch_norm"), layer("relu")}},
      {"batch_norm and a relu that is not alone",
       image(2, 4, 4),
       {same, layer("batch_norm", "n"), layer("relu", "r"), layer("add", "sum", {"n", "r"})}},
      {"batch_norm with renorm", image(2, 5, 4), after_conv(renorm)},
      {"batch_norm with renorm and relu", image(2, 5, 4), {conv(3, {2}), renorm, layer("relu")}},
      {"batch_norm synchronised", image(2, 5, 4), {conv(3, {2}), synchronised, layer("relu")}},
      {"batch_norm synchronised with renorm", image(2, 5, 4), {conv(3, {2}), both, layer("relu")}},
      {"batch_norm on samples", image(2, 5, 4), {layer("batch_norm"), layer("tanh")}},
      {"batch_norm of features", image(6, 1, 1), {layer("flatten"), dense(5), layer("batch_norm"), dense(kClasses)}},
      {"flatten of features", image(5, 1, 1), {layer("flatten"), dense(6), layer("flatten"), dense(kClasses)}},
      {"add", image(2, 4, 4), {same, padded, layer("add", "sum", {"body", "first"}), layer("tanh")}},
      {"add of a value to itself", image(2, 4, 4), {same, layer("add", "twice", {"first", "first"}), layer("tanh")}},
      {"relu of a sum", image(2, 4, 4), {same, padded, layer("add", "sum", {"body", "first"}), layer("relu")}},
      {"relus of sums",
       image(2, 4, 4),
       {same, padded, layer("add", "a", {"body", "first"}), layer("relu", "r"), again,
        layer("add", "b", {"again", "r"}), layer("relu", "s"), layer("add", "c", {"s", "first"})}},
      {"two adds share a value",
       image(2, 4, 4),
       {same, padded, layer("add", "a", {"first", "body"}), layer("tanh", "t", {"a"}),
        layer("add", "b", {"t", "first"}), layer("add", "c", {"b", "a"})}},
      {"image and features of one value",
       image(2, 4, 4),
       {same, layer("flatten", "flat", {"first"}), layer("tanh", "bent", {"flat"}), layer("sigmoid", "s", {"first"}),
        layer("flatten", "flat2", {"s"}), layer("add", "sum", {"flat2", "bent"})}},
      {"dense of a sequence", sequence(3, 4), {dense(5), layer("tanh")}},
      {"layer_norm of a sequence", sequence(3, 4), {dense(5), layer("layer_norm"), layer("tanh")}},
      {"position", sequence(3, 4), {dense(5), layer("position"), layer("tanh")}},
      {"attention", sequence(3, 4), attended(2, false)},
      {"attention causal", sequence(4, 3), attended(3, true)},
      {"attention with lengths", sequence(4, 3, true), attended(1, false)},
      {"sequence_pool mean", sequence(4, 3, true), {dense(5), sequence_pool("mean"), layer("tanh")}},
      {"sequence_pool sum", sequence(4, 3), {dense(5), sequence_pool("sum"), layer("tanh")}},
      {"sequence_pool last", sequence(4, 3, true), {dense(5), layer("tanh"), sequence_pool("last")}},
      {"mse", numbers(5, {3}), {layer("flatten"), dense(6), layer("tanh"), dense(3)}},
      {"mse of one number", numbers(5, {}), {layer("flatten"), dense(6), layer("tanh"), dense(1)}, "mse"},
      {"bce", numbers(5, {2}), {layer("flatten"), dense(6), layer("tanh"), dense(2)}, "bce"},
      {"bce of two classes", numbers(5, {}, 2), {layer("flatten"), dense(6), layer("tanh"), dense(1)}, "bce"},
      {"mae", numbers(5, {3}), {layer("flatten"), dense(6), layer("tanh"), dense(3)}, "mae"},
      {"hinge of two classes", numbers(5, {}, 2), {layer("flatten"), dense(6), layer("tanh"), dense(1)}, "hinge"},
      {"focal", numbers(5, {}, kClasses), {layer("flatten"), dense(6), layer("tanh")}, "focal"},
      {"features first, image later",
       image(2, 4, 4),
       {same, layer("sigmoid", "s", {"first"}), layer("flatten", "flat2", {"s"}), layer("flatten", "flat", {"first"}),
        layer("tanh", "bent", {"flat"}), layer("add", "sum", {"flat2", "bent"}),
        layer("add", "again", {"sum", "flat"})}},
  };
  for (const std::vector<LayerRow>& more : {rows_of_other_axes(), recurrent_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

Graph graph_of(const LayerRow& row) {
  std::vector<LayerConfig> layers = row.layers;
  if (layers.back().type != "dense") {
    layers.push_back(layer("flatten"));
    layers.push_back(dense(kClasses));
  }
  return build_layers(layers, row.form, {row.loss});
}

}  // namespace echelon::test
