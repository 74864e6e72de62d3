// SPDX-License-Identifier: Apache-2.0
// The top of the file, [model], [data], [batch] and [train].
#include "config/keys/section.hpp"
#include "config/traits/zoo.hpp"

namespace echelon::inline config::keys {

void add_experiment(Table& all) {
  Section<Config, Config> top(all, "", [](Config& config) -> Config& { return config; });
  top.key("name", &Config::name, plain_name(), "runs are written to <run.results>/<name>/", kNeutral);
  top.key("seed", &Config::seed, at_least(0), "seed of initial weights, shuffling and all other random choices");

  auto model = part(all, "model", &Config::model);
  model.key("zoo", &ModelConfig::zoo, words_or_empty(zoo_names()),
            "a predefined model; otherwise define [[model.layers]]");
  model.key("loss", &ModelConfig::loss, words({"auto", "softmax", "focal", "dice", "mse", "mae", "bce", "hinge"}),
            "auto: softmax over classes, mse if labels are real numbers");
  model.key("label_smoothing", &ModelConfig::label_smoothing, range(0, 0.999),
            "loss softmax: fraction of the target that is spread over all classes in training");
  model.key("synchronised_batch_norm", &ModelConfig::synchronised_batch_norm, {},
            "every batch norm takes its statistics over all replicas");
  model.key("batch_renorm", &ModelConfig::batch_renorm, {},
            "every batch norm is corrected towards its running statistics");
  model.key("dense_embeddings", &ModelConfig::dense_embeddings, {},
            "use dense gradients for all embeddings: whole tables are updated and sent");
  model.key("weights", &ModelConfig::weights, text(),
            "initial weights by name: a .safetensors file, a run's folder or a checkpoint; \"\": drawn from the seed");
  model.key("weights_partial", &ModelConfig::weights_partial, {},
            "weights: tensors missing from the file, or of another shape, are drawn; its other tensors are ignored");
  model.key("freeze", &ModelConfig::freeze, text(),
            "layers or parameters that are not trained, by name or pattern: [\"conv*\", \"fc1.bias\"]");

  model.younger();
  model.key("focal_gamma", &ModelConfig::focal_gamma, range(0, 100),
            "loss focal: exponent of 1 less the probability of the label");
  model.key("widths", &ModelConfig::widths, range(1, 65536),
            "zoo unet, cosmoflow: channels of each level, [64, 128, 256]; frnn_lstm: units of each LSTM; empty: those "
            "published");
  model.key("dropout", &ModelConfig::dropout, range(-1, 0.999), "rate of every dropout layer; -1: that of each layer");
  model.key("init", &ModelConfig::init, words({"default", "uniform", "he", "orthogonal"}),
            "initial weights of layers that multiply. default: uniform in 1 / sqrt(inputs), as PyTorch's; uniform: by "
            "init_range; he: normal, sqrt(2 / inputs), biases 0; orthogonal: rows or columns of length 1 at right "
            "angles, biases 0");
  model.key("init_range", &ModelConfig::init_range, range(1e-6, 100),
            "init uniform: weights and biases are in [-range, range)");
  model.key("batch_norm_group", &ModelConfig::batch_norm_group, range(0, 65536),
            "synchronised batch norm: statistics over this many neighbouring replicas; 0: over all");

  Section<Config, LabelKeys> labels(all, "model", [](Config& config) -> LabelKeys& { return config.model.labels; });
  labels.younger();
  labels.key("ignore_label", &LabelKeys::ignore_label, range(-2147483648.0, 2147483647),
             "labels that do not count, in the loss or in metrics: 255, or [254, 255]");
  labels.key("class_weights", &LabelKeys::class_weights, range(1e-6, 1e6),
             "weight of the labels of each class in the loss, which is divided by the weights of the step's labels");
  labels.key("inverse_frequency", &LabelKeys::inverse_frequency, range(0, 2),
             "instead of class_weights: they are (1 / frequency in the training labels) to this power, with mean 1; 0: "
             "off");

  auto data = part(all, "data", &Config::data);
  data.key("train", &DataConfig::train, text(), "folder, file or pattern of HDF5 shards");
  data.key("test", &DataConfig::test, text(), "the same for the evaluation data; empty: no evaluation");
  data.key("sharding", &DataConfig::sharding, words({"auto", "file", "record", "node", "replicated"}),
           "how samples are assigned. file: whole files to each replica; record: all replicas share one order of all "
           "records; node: the replicas of a host read the files of that host, each in its own order; replicated: each "
           "replica reads all samples; auto: file if there are enough files of about equal size with the same classes, "
           "else record");
  data.key("ragged", &DataConfig::ragged, words({"wrap", "drop", "zero_weight"}),
           "the incomplete last step of an epoch: wrap around, drop it, or fill it with samples of weight 0");
  data.key("balance", &DataConfig::balance, words({"static", "queue", "speed"}),
           "static: each replica has its shard; queue: replicas that do not step together draw batches from one order "
           "of all records, so that fast ones take more; speed: replicas that step together share each step by their "
           "measured speed");
  data.key(
      "fraction", &DataConfig::fraction, range(1e-6, 1),
      "fraction of the training samples that is used: the first ones of a permutation by the seed, of each file; of "
      "a text (order = \"stream\") its beginning; the same for every number of replicas");
  data.key("shuffle", &DataConfig::shuffle, {}, "a new order every epoch");
  data.key(
      "order", &DataConfig::order, words({"samples", "stream"}),
      "stream: each row of the batch continues its text or series from step to step; for layers with carry = true");
  data.key("sequence_length", &DataConfig::sequence_length, range(0, 1e6),
           "text: tokens of a window, 0: 64; sequences: truncated to this length, 0: the longest");
  data.key("buckets", &DataConfig::buckets, range(1, 1e6),
           "length buckets: a step takes sequences of one bucket, padded to this length; one number: how many buckets; "
           "empty: off");
  data.key("augment_crop_padding", &DataConfig::augment_crop_padding, range(0, 64),
           "training images: this much zero padding, then a random crop of the original size");
  data.key("augment_flip", &DataConfig::augment_flip, {}, "training images: horizontal flip with probability 1/2");
  data.key("prefetch", &DataConfig::prefetch, range(1, 64), "batches read ahead");
  data.key("buffer_mb", &DataConfig::buffer_mb, range(1, 65536), "buffer for decoded records on each rank");
  data.key("window_chunks", &DataConfig::window_chunks, range(1, 4096),
           "number of chunks whose records are shuffled together; more, as far as buffer_mb goes, where chunks are "
           "sorted by class");
  data.key("stage", &DataConfig::stage, text(),
           "folder on a disk of each host: shards are copied there once and read there; \"\": they are read in place",
           kNeutral);
  data.key("stage_limit_gb", &DataConfig::stage_limit_gb, range(0, 1e6),
           "limit of staged copies in GB; least recently used ones are removed; 0: no limit; a tenth of the disk is "
           "always kept free",
           kNeutral);
  data.key("as_replicas", &DataConfig::as_replicas, range(0, 65536),
           "one replica processes the samples of this many replicas; 0: off");
  data.younger();
  data.key("image_size", &DataConfig::image_size, range(1, 65536),
           "height and width that the model sees of images of any size; empty: as they are stored");
  data.key("evaluation_resize", &DataConfig::evaluation_resize, range(0, 65536),
           "image_size: in evaluation the shorter side is resized to this, and the centre is taken; 0: 8/7 of the "
           "larger side of image_size");
  data.key("threads", &DataConfig::threads, range(1, 256),
           "images: threads of each rank that decode, resize and change samples", kNeutral);
  add_augment(all);
  add_hdf5(all);

  auto batch = part(all, "batch", &Config::batch);
  batch.key("global", &BatchConfig::global, range(0, 1e9),
            "samples per step over all replicas: micro-batch x accumulation x replicas; 0: the whole data set");
  batch.key("accumulation", &BatchConfig::accumulation, range(1, 65536),
            "micro-batches of a replica for each exchange");
  batch.key("shares", &BatchConfig::shares, range(1, 1e6), "relative batch sizes by replica; empty: equal");
  batch.key("scale_with_replicas", &BatchConfig::scale_with_replicas, {},
            "weak scaling: global is the batch of one replica and is multiplied by the number of replicas");

  auto train = part(all, "train", &Config::train);
  train.key("epochs", &TrainConfig::epochs, range(0, 1e6), "number of epochs; 0: train.steps ends the run", kNeutral);
  train.key("steps", &TrainConfig::steps, range(0, 1e12), "stop after this many updates; 0: train.epochs ends the run",
            kNeutral);
  train.key(
      "divergence_factor", &TrainConfig::divergence_factor, range(0, 1e9),
      "exits with 5 after 20 consecutive losses above this multiple of the first step's loss (taken as at least 1); "
      "0: off",
      kNeutral);
  train.key("reproducible", &TrainConfig::reproducible, {},
            "bitwise identical results on 1, 2, 4, .. replicas of one split (a fixed summation tree)");
  train.key("micro_shards", &TrainConfig::micro_shards, range(1, 65536),
            "reproducible: number of parts of the batch, a power of two and at least the number of replicas");
}

}  // namespace echelon::inline config::keys
