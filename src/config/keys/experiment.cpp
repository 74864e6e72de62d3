// The top of the file, [model], [data], [batch] and [train].
#include "config/keys/section.hpp"
#include "config/traits/zoo.hpp"

namespace echelon::keys {

void add_experiment(Table& all) {
  Section<Config, Config> top(all, "", [](Config& config) -> Config& { return config; });
  top.key("name", &Config::name, plain_name(), "runs are written to <run.results>/<name>/", kNeutral);
  top.key("seed", &Config::seed, at_least(0), "of initial weights, shuffling and every other random choice");

  auto model = part(all, "model", &Config::model);
  model.key("zoo", &ModelConfig::zoo, words_or_empty(zoo_names()), "a ready-made model; else write [[model.layers]]");
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
  data.key("window_chunks", &DataConfig::window_chunks, range(1, 4096),
           "chunks whose records are mixed by the shuffle");
  data.key("as_replicas", &DataConfig::as_replicas, range(0, 65536),
           "one replica takes the samples that this many would; 0: off");

  auto batch = part(all, "batch", &Config::batch);
  batch.key("global", &BatchConfig::global, range(0, 1e9),
            "samples a step over all replicas: micro-batch x accumulation x replicas; 0: all there are");
  batch.key("accumulation", &BatchConfig::accumulation, range(1, 65536),
            "micro-batches a replica runs before one exchange");
  batch.key("shares", &BatchConfig::shares, range(1, 1e6), "parts of the batch by replica; empty: equal");
  batch.key("scale_with_replicas", &BatchConfig::scale_with_replicas, {},
            "weak scaling: global is meant for one replica and grows with their number");

  auto train = part(all, "train", &Config::train);
  train.key("epochs", &TrainConfig::epochs, range(0, 1e6), "0: by steps alone", kNeutral);
  train.key("steps", &TrainConfig::steps, range(0, 1e12), "stop after this many updates; 0: by epochs alone", kNeutral);
  train.key("divergence_factor", &TrainConfig::divergence_factor, range(0, 1e9),
            "exit 5 after 20 losses above this x the first step's (at least 1); 0: off", kNeutral);
  train.key("reproducible", &TrainConfig::reproducible, {}, "the same bits on 1, 2, 4, .. replicas: one tree of sums");
  train.key("micro_shards", &TrainConfig::micro_shards, range(1, 65536),
            "reproducible: parts of the batch, a power of two; as many replicas at most");
}

}  // namespace echelon::keys
