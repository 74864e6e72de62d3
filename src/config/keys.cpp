#include "config/keys.hpp"

#include <fmt/format.h>

#include <cctype>
#include <optional>
#include <type_traits>

#include "base/check.hpp"

namespace echelon {
namespace {

constexpr double kHuge = 9e15;  // whole numbers up to here are exact in a double

KeyLimits range(double low, double high) { return {.low = low, .high = high}; }
KeyLimits at_least(double low) { return range(low, kHuge); }
KeyLimits words(std::vector<std::string> list) { return {.low = 1, .high = 0, .words = std::move(list)}; }
KeyLimits words_or_empty(std::vector<std::string> list) {
  KeyLimits limits = words(std::move(list));
  limits.or_empty = true;
  return limits;
}
KeyLimits text() { return words({}); }
KeyLimits filled_text() { return {.low = 1, .high = 0, .filled = true}; }
KeyLimits plain_name() { return {.low = 1, .high = 0, .plain_name = true, .most = 64}; }
KeyLimits pair(double low, double high) { return {.low = low, .high = high, .most = 2}; }

// Words stand in the order of the enum.
template <class Field>
KeyValue to_value(const Field& field, const KeyLimits& limits) {
  if constexpr (std::is_enum_v<Field>)
    return limits.words[static_cast<std::size_t>(field)];
  else if constexpr (std::is_same_v<Field, std::uint64_t>)
    return static_cast<std::int64_t>(field);
  else
    return field;
}

template <class Field>
Field from_value(const KeyValue& value, const KeyLimits& limits) {
  if constexpr (std::is_enum_v<Field>) {
    const std::string& word = std::get<std::string>(value);
    std::size_t at = 0;
    while (at < limits.words.size() && limits.words[at] != word) ++at;
    ECHELON_CHECK_LT(at, limits.words.size(), "the word was checked before");
    return static_cast<Field>(at);
  } else if constexpr (std::is_same_v<Field, std::uint64_t>) {
    return static_cast<std::uint64_t>(std::get<std::int64_t>(value));
  } else {
    return std::get<Field>(value);
  }
}

// Adds keys of one section to the table. `at` is the section inside the owner.
template <class Owner, class Part>
class Section {
 public:
  using At = std::function<Part&(Owner&)>;
  Section(std::vector<Key<Owner>>& table, std::string name, At at, bool neutral = false)
      : table_(table), name_(std::move(name)), at_(std::move(at)), neutral_(neutral) {}

  template <class Field>
  void key(const char* name, Field Part::*field, const KeyLimits& limits, const char* help,
           std::optional<bool> neutral = {}) {
    const At at = at_;
    table_.push_back(
        {name_, name, help, limits, neutral.value_or(neutral_),
         [=](const Owner& owner) { return to_value(at(const_cast<Owner&>(owner)).*field, limits); },
         [=](Owner& owner, const KeyValue& value) { at(owner).*field = from_value<Field>(value, limits); }});
  }

 private:
  std::vector<Key<Owner>>& table_;
  std::string name_;
  At at_;
  bool neutral_;
};

template <class Part>
Section<Config, Part> part(std::vector<Key<Config>>& table, const char* name, Part Config::*member,
                           bool neutral = false) {
  return {table, name, [=](Config& config) -> Part& { return config.*member; }, neutral};
}

constexpr bool kNeutral = true;

// The words of algorithms, models, devices, rules and strategies are those of their registries, which stand above this
// room; tests/unit/config/test_registries.cpp holds the two together.
std::vector<Key<Config>> make_config_keys() {
  std::vector<Key<Config>> all;
  Section<Config, Config> top(all, "", [](Config& config) -> Config& { return config; });
  top.key("name", &Config::name, plain_name(), "runs are written to <run.results>/<name>/", kNeutral);
  top.key("seed", &Config::seed, at_least(0), "of initial weights, shuffling and every other random choice");

  auto model = part(all, "model", &Config::model);
  model.key("zoo", &ModelConfig::zoo,
            words_or_empty({"digits_cnn", "lenet", "alexnet", "vgg16", "googlenet", "inception_v3", "resnet18",
                            "resnet20", "resnet32", "resnet44", "resnet56", "resnet50", "charlstm", "chargru",
                            "wordlstm", "sequence_classifier", "translation", "transformer", "ranking"}),
            "a ready-made model; else write [[model.layers]]");
  model.key("loss", &ModelConfig::loss, words({"auto", "softmax", "mse", "bce"}),
            "auto: softmax over classes, mse where labels are real numbers");
  model.key("label_smoothing", &ModelConfig::label_smoothing, range(0, 0.999),
            "loss softmax: part of the target that is spread over all classes, in training");
  model.key("synchronised_batch_norm", &ModelConfig::synchronised_batch_norm, {},
            "every batch norm takes its statistics over all replicas");
  model.key("batch_renorm", &ModelConfig::batch_renorm, {},
            "every batch norm is corrected towards its running statistics");
  model.key("dense_embeddings", &ModelConfig::dense_embeddings, {},
            "no embedding is sparse, whatever the zoo says: its whole gradient is applied and sent");

  auto data = part(all, "data", &Config::data);
  data.key("train", &DataConfig::train, text(), "folder, file or pattern of HDF5 shards");
  data.key("test", &DataConfig::test, text(), "the same for evaluation; empty: none");
  data.key("sharding", &DataConfig::sharding, words({"auto", "file", "record", "replicated"}),
           "auto: file where files >= replicas, else record");
  data.key("ragged", &DataConfig::ragged, words({"wrap", "drop", "zero_weight"}),
           "the last step of an epoch: start over, leave out, or fill with samples of weight 0");
  data.key("shuffle", &DataConfig::shuffle, {}, "a new order every epoch");
  data.key("order", &DataConfig::order, words({"samples", "stream"}),
           "stream: text read on from step to step by each row of the batch; for states that are carried");
  data.key("sequence_length", &DataConfig::sequence_length, range(0, 1e6),
           "text: tokens of a window, 0: 64; sequences: cut to this, 0: the longest");
  data.key("buckets", &DataConfig::buckets, range(1, 1e6),
           "sequences of up to these lengths share steps; one number: so many buckets; empty: off");
  data.key("augment_crop_padding", &DataConfig::augment_crop_padding, range(0, 64),
           "images in training: zeros around them, then a random crop of their size");
  data.key("augment_flip", &DataConfig::augment_flip, {}, "images in training: half of them mirrored left to right");
  data.key("prefetch", &DataConfig::prefetch, range(1, 64), "batches read ahead");
  data.key("buffer_mb", &DataConfig::buffer_mb, range(1, 65536), "of decoded records a rank");
  data.key("window_chunks", &DataConfig::window_chunks, range(1, 4096), "chunks whose records a shuffle mixes");
  data.key("as_replicas", &DataConfig::as_replicas, range(0, 65536),
           "one replica takes the samples that this many would; 0: off");

  auto batch = part(all, "batch", &Config::batch);
  batch.key("global", &BatchConfig::global, range(0, 1e9),
            "samples a step over all replicas: micro-batch x accumulation x replicas; 0: all there are");
  batch.key("accumulation", &BatchConfig::accumulation, range(1, 65536),
            "micro-batches a replica runs before one exchange");
  batch.key("shares", &BatchConfig::shares, range(1, 1e6), "parts of the batch by replica; empty: equal");
  batch.key("scale_with_replicas", &BatchConfig::scale_with_replicas, {}, "weak scaling: global is of one replica");

  auto train = part(all, "train", &Config::train);
  train.key("epochs", &TrainConfig::epochs, range(0, 1e6), "0: by steps alone", kNeutral);
  train.key("steps", &TrainConfig::steps, range(0, 1e12), "stop after this many updates; 0: by epochs alone", kNeutral);
  train.key("divergence_factor", &TrainConfig::divergence_factor, range(0, 1e9),
            "exit 5 after 20 losses above this x the first step's (at least 1); 0: off", kNeutral);
  train.key("reproducible", &TrainConfig::reproducible, {}, "the same bits on 1, 2, 4, .. replicas: one tree of sums");
  train.key("micro_shards", &TrainConfig::micro_shards, range(1, 65536),
            "reproducible: parts of the batch, a power of two; as many replicas at most");

  auto optimizer = part(all, "optimizer", &Config::optimiser);
  optimizer.key("rule", &OptimiserConfig::rule, words({"sgd", "adam", "adamw", "rmsprop", "lars", "lamb"}), "");
  optimizer.key("learning_rate", &OptimiserConfig::learning_rate, range(0, 1000), "");
  optimizer.key("momentum", &OptimiserConfig::momentum, range(0, 0.9999), "rules sgd, rmsprop and lars");
  optimizer.key("weight_decay", &OptimiserConfig::weight_decay, range(0, 1), "not on biases and batch norm");
  optimizer.key("nesterov", &OptimiserConfig::nesterov, {}, "rule sgd: look ahead along the momentum");
  optimizer.key("beta1", &OptimiserConfig::beta1, range(0, 0.999999),
                "rules adam, adamw and lamb: decay of the first moment");
  optimizer.key("beta2", &OptimiserConfig::beta2, range(0, 0.999999),
                "rules adam, adamw and lamb: decay of the second moment");
  optimizer.key("alpha", &OptimiserConfig::alpha, range(0, 0.999999), "rule rmsprop: decay of the mean square");
  optimizer.key("epsilon", &OptimiserConfig::epsilon, range(1e-20, 1),
                "rules adam, adamw, lamb and rmsprop: added to the root of the second moment");
  optimizer.key("trust_coefficient", &OptimiserConfig::trust_coefficient, range(1e-9, 1000),
                "rule lars: eta of a layer's rate eta*|w| / (|g| + weight_decay*|w|)");
  optimizer.key("lazy", &OptimiserConfig::lazy, {},
                "sparse embeddings: only the rows that a step touches are updated, though momentum, decay or moments "
                "would move the others too; an approximation");
  optimizer.key("clip_norm", &OptimiserConfig::clip_norm, range(0, 1e9),
                "the norm of the whole gradient is cut to this; 0: off");
  optimizer.key("scaling", &OptimiserConfig::scaling, words({"none", "linear", "sqrt"}),
                "learning_rate is for base_batch samples a step and grows with batch.global, or with its root");
  optimizer.key("base_batch", &OptimiserConfig::base_batch, range(0, 1e9),
                "scaling linear and sqrt: samples a step that learning_rate is for");
  optimizer.key("schedule", &OptimiserConfig::schedule, words({"constant", "step", "cosine", "polynomial"}),
                "of the learning rate");
  optimizer.key("warmup_epochs", &OptimiserConfig::warmup_epochs, range(0, 1e6), "linear from 0 to learning_rate");
  optimizer.key("decay_at_epochs", &OptimiserConfig::decay_at_epochs, range(0, 1e6),
                "schedule step: times decay_factor at each of these");
  optimizer.key("decay_factor", &OptimiserConfig::decay_factor, range(0, 1), "schedule step");
  optimizer.key("final_factor", &OptimiserConfig::final_factor, range(0, 1),
                "schedules cosine and polynomial: learning rate at the end, as a part of learning_rate");
  optimizer.key("power", &OptimiserConfig::power, range(0.01, 100), "schedule polynomial; 1: a straight line");

  auto parallel = part(all, "parallel", &Config::parallel, kNeutral);
  parallel.key("pipeline", &ParallelConfig::pipeline, range(1, 4096),
               "stages that a model's layers are cut into, each on a rank; batch.accumulation is their micro-batches");
  parallel.key("tensor", &ParallelConfig::tensor, range(1, 4096), "ranks that share the units of each layer");
  parallel.key(
      "recurrent_from", &ParallelConfig::recurrent_from, range(-1, 1e9),
      "tensor: recurrent layers of at least so many units share them, at the price of a gather and a sum every "
      "step; 0: they stay whole; -1: from 64 units (512 with allow_across_nodes) on the host's cores, whole on GPUs");
  parallel.key("space", &ParallelConfig::space, range(1, 4096), "ranks that share the rows of images");
  parallel.key(
      "time_chunks", &ParallelConfig::time_chunks, range(1, 65536),
      "pipeline: the steps of sequences are cut into so many chunks, so that stages of recurrent layers overlap");
  parallel.key("split", &ParallelConfig::split, words({"given", "auto"}),
               "auto: pipeline, tensor and space are chosen for the ranks and the memory limit");
  parallel.key("costs", &ParallelConfig::costs, words({"counted", "measured"}),
               "pipeline: from which stages are chosen: counted FLOPs | times measured on this device");
  parallel.key("schedule", &ParallelConfig::schedule, words({"gpipe", "1f1b"}),
               "pipeline: all forwards first, or in turns with backwards, which holds fewer activations");
  parallel.key("allow_across_nodes", &ParallelConfig::allow_across_nodes, {},
               "the ranks of one model may lie on several hosts");

  auto exchange = part(all, "exchange", &Config::exchange);
  exchange.key("strategy", &ExchangeConfig::strategy, words({"synchronous", "server"}),
               "synchronous: all-reduce; server: parameter servers take the steps");
  exchange.key("algorithm", &ExchangeConfig::algorithm,
               words({"naive", "ring", "halving_doubling", "butterfly", "binomial", "tree", "server", "hierarchical",
                      "mpi", "nccl", "auto"}),
               "of the all-reduce; nccl: between GPUs; auto: this, segments and buckets are measured and chosen when "
               "the run starts");
  exchange.key(
      "overlap", &ExchangeConfig::overlap, words({"none", "buckets", "layers"}),
      "none: after back-propagation; buckets: beside it; layers: and the next forward waits layer by layer. The "
      "default gives way to buckets where the optimiser needs every gradient first (clip_norm, a scaled loss)");
  exchange.key(
      "priority", &ExchangeConfig::priority, {},
      "what the next forward needs first goes first; the default gives way to false for algorithms mpi and nccl");
  exchange.key("codec", &ExchangeConfig::codec,
               words({"none", "fp16", "bf16", "int8", "onebit", "topk", "threshold", "lossless"}),
               "how gradients, with strategy server weights too, are written on the wire; what a lossy one leaves out "
               "is sent later");
  exchange.key("density", &ExchangeConfig::density, range(1e-6, 1),
               "codec topk: part of the values that is sent; codec threshold: what tau = 0 aims at");
  exchange.key("tau", &ExchangeConfig::tau, range(0, 1e9),
               "codec threshold: values of this size and more are sent as +tau or -tau; 0: adapts to density");
  exchange.key("index_coding", &ExchangeConfig::index_coding, words({"raw", "golomb", "gamma"}),
               "codecs topk and threshold: how the places of values are written");
  exchange.key("codec_warmup_steps", &ExchangeConfig::codec_warmup_steps, range(0, 1e12),
               "the first steps of the run send gradients as they are, then the codec starts");
  exchange.key("bucket_mb", &ExchangeConfig::bucket_mb, range(0.001, 4096), "gradients sent together");
  exchange.key("sparse_density", &ExchangeConfig::sparse_density, range(0, 1),
               "a step sends a sparse embedding's table whole where replicas touch more than this share of its rows on "
               "average; 0: where that takes fewer bytes, 1: never");
  exchange.key("segment_kb", &ExchangeConfig::segment_kb, range(1, 1048576),
               "longest message of an all-reduce, except of naive, mpi and nccl: pipelining grain");
  exchange.key("servers", &ExchangeConfig::servers, range(0, 65536),
               "algorithm or strategy server: ranks that serve a part each, spread over the hosts; 0: all");
  exchange.key("server_ranks", &ExchangeConfig::server_ranks, range(0, 65536),
               "strategy server: so many of the last ranks are servers alone and train nothing; 0: servers inside the "
               "workers",
               kNeutral);
  exchange.key("inner", &ExchangeConfig::inner, words({"ring", "halving_doubling", "server", "binomial", "tree"}),
               "algorithm hierarchical: inside a host");
  exchange.key("outer", &ExchangeConfig::outer,
               words({"naive", "ring", "halving_doubling", "butterfly", "binomial", "tree", "server"}),
               "algorithm hierarchical: between hosts");
  exchange.key("verify_every_steps", &ExchangeConfig::verify_every_steps, at_least(0),
               "checksums of every replica's weights; 0: at step 0 and the end");

  auto device = part(all, "device", &Config::device);
  device.key("kind", &DeviceConfig::kind, words({"auto", "reference", "onednn", "cuda", "paced"}),
             "auto: cuda where a GPU is usable, else onednn");
  device.key("dtype", &DeviceConfig::dtype, words({"f32", "f64", "f16", "bf16"}),
             "f64: kinds reference and cuda; f16 and bf16: kind cuda, activations alone, weights stay f32");
  device.key("tf32", &DeviceConfig::tf32, {},
             "kind cuda, f32: convolutions and products round their operands to TF32, faster and of 3 digits");
  device.key("cuda_graphs", &DeviceConfig::cuda_graphs, {},
             "kind cuda: ops are recorded and launched as CUDA graphs; pays where ops are many and small");
  device.key("loss_scale", &DeviceConfig::loss_scale, range(0, 16777216),
             "the loss is scaled by this power of two in backward; 0: dynamic for f16, else off");
  device.key("threads", &DeviceConfig::threads, range(0, 4096), "of one rank; 0: cores of the host / ranks on it");
  device.key("memory_limit_mb", &DeviceConfig::memory_limit_mb, at_least(0), "0: none");
  device.key("paced_gflops", &DeviceConfig::paced_gflops, range(1e-6, 1e9),
             "kind paced: rate of ops without a row in the table");
  device.key("paced_gb_per_s", &DeviceConfig::paced_gb_per_s, range(1e-6, 1e9), "kind paced: memory rate of the same");
  device.key("paced_table", &DeviceConfig::paced_table, text(),
             "kind paced: file of measured op times (bench step --table)");

  auto evaluate = part(all, "evaluate", &Config::evaluate);
  evaluate.key("every_epochs", &EvaluateConfig::every_epochs, range(0, 1e6), "0: only at the end");
  evaluate.key("batch", &EvaluateConfig::batch, range(1, 1e6),
               "samples a rank and pass; with data.order = \"stream\" rows over all ranks");

  auto checkpoint = part(all, "checkpoint", &Config::checkpoint, kNeutral);
  checkpoint.key("every_steps", &CheckpointConfig::every_steps, at_least(0), "0: off");
  checkpoint.key("every_minutes", &CheckpointConfig::every_minutes, range(0, 1e6), "0: off");
  checkpoint.key("every_epochs", &CheckpointConfig::every_epochs, range(0, 1e6), "0: off");
  checkpoint.key("keep", &CheckpointConfig::keep, range(1, 10000), "newest ones kept");

  auto run = part(all, "run", &Config::run, kNeutral);
  run.key("results", &RunConfig::results, filled_text(), "folder of all runs");
  run.key("restart", &RunConfig::restart, words({"auto", "never", "require"}), "from the newest own checkpoint");
  run.key("resume_from", &RunConfig::resume_from, text(), "folder or checkpoint of a run to begin from", !kNeutral);
  run.key("resume_weights_only", &RunConfig::resume_weights_only, {}, "of it the weights alone, at step 0", !kNeutral);
  run.key("heartbeat_s", &RunConfig::heartbeat_s, range(0.01, 86400), "a line of progress at least this often");
  run.key("hang_timeout_s", &RunConfig::hang_timeout_s, range(0.1, 604800), "a longer wait ends the job, code 7");
  run.key("stop_before_end_s", &RunConfig::stop_before_end_s, range(0, 604800),
          "so long before Slurm's end of the job: checkpoint, exit 75; 0: off");
  run.key("progress", &RunConfig::progress, words({"auto", "bar", "lines", "none"}), "");
  run.key("log_every_steps", &RunConfig::log_every_steps, range(1, 1e9), "rows of metrics.jsonl");
  return all;
}

std::vector<Key<LayerConfig>> make_layer_keys() {
  std::vector<Key<LayerConfig>> all;
  Section<LayerConfig, LayerConfig> layer(all, "model.layers",
                                          [](LayerConfig& config) -> LayerConfig& { return config; });
  std::vector<std::string> types;
  for (const LayerKeys& type : layer_key_table()) types.push_back(type.type);
  layer.key("type", &LayerConfig::type, words(types), "");
  layer.key("name", &LayerConfig::name, plain_name(), "default: type and a number, conv1");
  layer.key("inputs", &LayerConfig::inputs, plain_name(), "names of layers; default: the layer before");
  layer.key("stage", &LayerConfig::stage, range(-1, 4095),
            "parallel.pipeline: the stage that runs it; -1: chosen by cost");
  layer.key("channels", &LayerConfig::channels, range(1, 1e6), "conv: of the output");
  layer.key("units", &LayerConfig::units, range(1, 1e8),
            "dense: of the output; embedding: features; rnn, lstm, gru: size of the state");
  layer.key("kernel", &LayerConfig::kernel, pair(1, 4096), "conv, pools: [rows, columns] or one number");
  layer.key("stride", &LayerConfig::stride, pair(1, 4096), "default 1 (conv), the kernel (pools)");
  layer.key("padding", &LayerConfig::padding, pair(0, 4096), "default 0");
  layer.key("dilation", &LayerConfig::dilation, pair(1, 4096), "conv; default 1");
  layer.key("groups", &LayerConfig::groups, range(1, 1e6), "conv");
  layer.key("bias", &LayerConfig::bias, {}, "conv, dense");
  layer.key("count_padding", &LayerConfig::count_padding, {}, "avg_pool: padded cells count in the divisor");
  layer.key("epsilon", &LayerConfig::epsilon, range(1e-12, 1), "batch_norm, layer_norm");
  layer.key("momentum", &LayerConfig::momentum, range(0, 1), "batch_norm: weight of the newest statistics");
  layer.key("synchronised", &LayerConfig::synchronised, {}, "batch_norm: statistics over all replicas' samples");
  layer.key("renorm", &LayerConfig::renorm, {}, "batch_norm: corrected towards the running statistics");
  layer.key("r_max", &LayerConfig::r_max, range(1, 1e6), "batch_norm with renorm: bound of the correction's factor");
  layer.key("d_max", &LayerConfig::d_max, range(0, 1e6), "batch_norm with renorm: bound of its shift");
  layer.key("rate", &LayerConfig::rate, range(0, 0.999), "dropout: share of zeros");
  layer.key("size", &LayerConfig::size, range(1, 4096), "lrn: channels of a window");
  layer.key("alpha", &LayerConfig::alpha, range(0, 1e6), "lrn: weight of the window's mean square");
  layer.key("beta", &LayerConfig::beta, range(0, 100), "lrn: exponent");
  layer.key("heads", &LayerConfig::heads, range(1, 4096), "attention");
  layer.key("causal", &LayerConfig::causal, {}, "attention: no place sees a later one");
  layer.key("mode", &LayerConfig::mode, words({"sum", "mean", "last"}), "sequence_pool");
  layer.key("k", &LayerConfig::k, range(1e-6, 1e6), "lrn: what the mean square is added to");
  layer.key("vocabulary", &LayerConfig::vocabulary, range(0, 1e9),
            "embedding: rows of the table; 0: as many as the data has tokens");
  layer.key("sparse", &LayerConfig::sparse, {},
            "embedding: its gradient is kept, applied and sent by the rows that a step touches");
  layer.key("activation", &LayerConfig::activation, words({"tanh", "relu"}), "rnn");
  layer.key("reverse", &LayerConfig::reverse, {}, "rnn, lstm, gru: from the end of the sequence to its beginning");
  layer.key("carry", &LayerConfig::carry, {},
            "rnn, lstm, gru: a batch begins with the states that the last one ended with");
  return all;
}

}  // namespace

const std::vector<Key<Config>>& config_keys() {
  static const std::vector<Key<Config>> table = make_config_keys();
  return table;
}

const std::vector<Key<LayerConfig>>& layer_keys() {
  static const std::vector<Key<LayerConfig>> table = make_layer_keys();
  return table;
}

const std::vector<LayerKeys>& layer_key_table() {
  constexpr const char* kStates = "1 input, or 2: a sequence, the state of another layer (NAME.1)";
  static const std::vector<LayerKeys> table = {
      {"conv", {"channels", "kernel", "stride", "padding", "dilation", "groups", "bias"}, {"channels", "kernel"}},
      {"max_pool", {"kernel", "stride", "padding"}, {"kernel"}},
      {"avg_pool", {"kernel", "stride", "padding", "count_padding"}, {"kernel"}},
      {"global_avg_pool", {}, {}},
      {"dense", {"units", "bias"}, {"units"}},
      {"relu", {}, {}},
      {"tanh", {}, {}},
      {"sigmoid", {}, {}},
      {"gelu", {}, {}},
      {"batch_norm", {"epsilon", "momentum", "synchronised", "renorm", "r_max", "d_max"}, {}},
      {"layer_norm", {"epsilon"}, {}},
      {"lrn", {"size", "alpha", "beta", "k"}, {}},
      {"dropout", {"rate"}, {}},
      {"flatten", {}, {}},
      {"position", {}, {}},
      {"attention", {"heads", "causal"}, {}, "3 inputs: queries, keys, values"},
      {"sequence_pool", {"mode"}, {}},
      {"add", {}, {"inputs"}, "2 or more inputs of one shape"},
      {"concat", {}, {"inputs"}, "2 or more inputs, joined along channels or features"},
      {"embedding", {"units", "vocabulary", "sparse"}, {"units"}},
      {"rnn", {"units", "activation", "reverse", "carry"}, {"units"}, kStates},
      {"lstm", {"units", "reverse", "carry"}, {"units"}, "1 input, or 3: a sequence, states h and c (NAME.1, NAME.2)"},
      {"gru", {"units", "reverse", "carry"}, {"units"}, kStates},
  };
  return table;
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Key<Config>& key : config_keys())
    if (!key.section.empty() && (names.empty() || names.back() != key.section)) names.push_back(key.section);
  return names;
}

std::string environment_name(const std::string& section, const std::string& name) {
  std::string out = "ECHELON_" + (section.empty() ? "" : section + "_") + name;
  for (char& c : out) c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace echelon
