// SPDX-License-Identifier: Apache-2.0
// The typed experiment: plain values with their defaults, and units in the names. This file is the reference of all
// keys. config/keys/ lists them again with range and help text for the parser, and a test compares the two. Keys that
// only one strategy has, [exchange.<strategy>], are in config/strategies/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "config/augment_keys.hpp"
#include "config/hdf5.hpp"
#include "config/label_keys.hpp"
#include "config/layer_config.hpp"
#include "config/traits/strategies.hpp"

namespace echelon::inline config {

enum class Sharding : std::uint8_t { automatic, file, record, node, replicated };
constexpr std::string_view name_of(Sharding sharding) {
  switch (sharding) {
    case Sharding::automatic: return "auto";
    case Sharding::file: return "file";
    case Sharding::record: return "record";
    case Sharding::node: return "node";
    case Sharding::replicated: return "replicated";
  }
  return "?";
}
enum class Ragged : std::uint8_t { wrap, drop, zero_weight };
enum class Order : std::uint8_t { samples, stream };
enum class Balance : std::uint8_t { fixed, queue, speed };
enum class Overlap : std::uint8_t { none, buckets, layers };
enum class Reduction : std::uint8_t { sum, adasum };
enum class Restart : std::uint8_t { automatic, never, require };
enum class OnLostWorker : std::uint8_t { stop, go_on };
enum class GoalMetric : std::uint8_t {
  none,
  test_accuracy,
  test_loss,
  test_perplexity,
  test_mean_iou,
  test_macro_f1,
  test_auc,
  test_mae,
  test_r2
};
enum class EvaluateBy : std::uint8_t { all, first, aside };
enum class PointsIn : std::uint8_t { epochs, steps };
enum class Watch : std::uint8_t { off, warn, stop };

struct ModelConfig {
  std::string zoo;                  // a predefined model; else `layers`
  std::vector<LayerConfig> layers;  // without the loss, which is added
  // auto (softmax for classes, mse for numbers) | softmax | focal | dice | mse | mae | bce | hinge
  std::string loss = "auto";
  double focal_gamma = 2;      // focal: exponent of 1 less the probability of the label
  double label_smoothing = 0;  // softmax: fraction of the target spread over all classes in training, in [0, 1)
  std::vector<std::int64_t>
      widths;           // zoo unet, cosmoflow: channels of each level; frnn_lstm: units of each LSTM; empty: published
  double dropout = -1;  // rate of every dropout layer, in [0, 1); -1: that of each layer
  LabelKeys labels;     // model.ignore_label, class_weights, inverse_frequency
  bool synchronised_batch_norm = false;  // every batch_norm layer is `synchronised`
  std::int64_t batch_norm_group = 0;     // synchronised: statistics over this many neighbouring replicas; 0: over all
  bool batch_renorm = false;             // every batch_norm layer has `renorm`
  bool dense_embeddings = false;         // no embedding is `sparse`, in model.zoo either
  std::string weights;                   // initial: a .safetensors file, a run's folder or a checkpoint; "": drawn
  bool weights_partial = false;          // weights: tensors that are missing, or have another shape, are drawn
  std::string init = "default";          // of weights that are drawn: "default" | "uniform" | "he" | "orthogonal"
  double init_range = 0.1;               // init uniform: weights and biases in [-range, range)
  std::vector<std::string> freeze;       // patterns of layers or parameters that training does not change
};

struct DataConfig {
  std::string train;                        // folder, file or pattern of HDF5 shards; relative to the working directory
  std::string test;                         // "": no evaluation
  Sharding sharding = Sharding::automatic;  // "auto" | "file" | "record" | "node" | "replicated"
  Ragged ragged = Ragged::wrap;             // "wrap" | "drop" | "zero_weight"
  Balance balance = Balance::fixed;         // "static": fixed shards | "queue": replicas draw batches as needed |
                                            // "speed": replicas share each step by their measured speed
  double fraction = 1;  // share of the samples to train on: the first of a seeded permutation, 1e-6 to 1
  bool shuffle = true;
  Order order = Order::samples;  // "samples": independent | "stream": rows of a batch continue the last ones
  std::int64_t sequence_length =
      0;  // text, streams: steps of a window, 0: 64; sequences: truncated to this length, 0: the longest
  std::vector<std::int64_t> buckets;  // sequences up to these lengths share steps; one number: this many; empty: off
  std::int64_t augment_crop_padding = 0;  // images: zeros around them, then a random crop of their size; training only
  bool augment_flip = false;              // images: half of them are mirrored left to right; training only
  std::int64_t prefetch = 2;              // batches, 1 to 64
  std::int64_t threads = 1;               // images: threads of a rank that decode and change samples, 1 to 256
  double buffer_mb = 64;                  // decoded records per rank, 1 to 65536
  std::int64_t window_chunks = 16;        // chunks whose records are shuffled together, 1 to 4096
  std::string stage;                      // folder on a local disk of each host to which shards are copied; "": none
  double stage_limit_gb = 0;              // limit for these copies, in 10^9 bytes; 0: the free space of the disk
  std::int64_t as_replicas =
      0;  // one replica processes the samples of this many replicas; 0: off. For equivalence studies
  std::vector<std::int64_t> image_size;  // (H, W) that the model sees of images; empty: as they are stored
  std::int64_t evaluation_resize = 0;    // image_size: shorter side in evaluation, of which the centre is taken; 0: 8/7
  AugmentKeys augment;                   // [data.augment], training only
  Hdf5Config hdf5;                       // [data.hdf5]

  // Keys of images that exclude each other, with the key below [data].
  std::optional<Misfit> image_misfit() const;
  // The same for the files of data.test.
  DataConfig of_test() const {
    DataConfig other = *this;
    other.hdf5 = hdf5.of_test();
    return other;
  }
};

struct BatchConfig {
  std::int64_t global = 64;          // samples per step over all replicas; 0: all samples
  std::int64_t accumulation = 1;     // micro-batches per replica for each exchange
  std::vector<std::int64_t> shares;  // relative share of each replica; default equal
  bool scale_with_replicas = false;  // weak scaling: `global` is per replica and grows with k
  bool nearly_equal = false;         // not a key: workers were lost, and parts of `global` may differ by a micro-batch
};

struct TrainConfig {
  std::int64_t epochs = 1;        // 0: only train.steps counts
  std::int64_t steps = 0;         // stop after this many updates; 0: train.epochs ends the run
  bool reproducible = false;      // any power of two of replicas up to micro_shards ends with the same bits
  double divergence_factor = 10;  // stops after 20 losses in a row above this x max(1, first step's loss); 0: off
  std::int64_t micro_shards = 8;  // reproducible: equal parts of a step's batch, one pass each; a power of two
};

struct OptimiserConfig {     // [optimizer]
  std::string rule = "sgd";  // sgd | adam | adamw | rmsprop | lars | lamb
  double learning_rate = 0.01;
  double momentum = 0.9;                // sgd, rmsprop, lars
  bool momentum_before_coding = false;  // sgd with exchange.codec: replicas apply it to their own gradients
  double weight_decay = 0.0;            // not applied to biases, batch norm and layer norm
  bool nesterov = false;                // sgd
  double beta1 = 0.9;                   // adam, adamw, lamb: decay of the first moment
  double beta2 = 0.999;                 // adam, adamw, lamb: decay of the second moment
  double alpha = 0.99;                  // rmsprop: decay of the mean square
  double epsilon = 1e-8;                // adam, adamw, lamb, rmsprop: added to the root of the second moment
  double trust_coefficient = 0.001;     // lars: eta of a layer's rate eta*|w| / (|g| + decay*|w|)
  bool lazy = false;                    // sparse embeddings: only touched rows are updated, also by momentum and decay
  double clip_norm = 0;                 // largest norm of the gradient over all weights; 0: off
  std::string scaling = "none";       // none | linear | sqrt: learning_rate is for base_batch, grows with batch.global
  std::int64_t base_batch = 0;        // scaling: samples per step that learning_rate is for
  double average_decay = 0;           // weights are averaged with this decay a step, and evaluated so; 0: off
  std::string schedule = "constant";  // a name of kSchedules (config/traits/rules.hpp)
  double warmup_epochs = 0;
  std::vector<double> decay_at_epochs;    // step
  double decay_factor = 0.1;              // step
  double final_factor = 0.0;              // cosine, polynomial, one_cycle: final rate as a fraction of learning_rate
  double power = 1.0;                     // polynomial
  std::int64_t schedule_epochs = 0;       // cosine, polynomial, one_cycle: epochs that it spans; 0: the whole run
  std::vector<double> points;             // piecewise_constant, piecewise_linear: where factors apply, from 0 on
  std::vector<double> factors;            // .. factor on learning_rate at each of the points
  PointsIn points_in = PointsIn::epochs;  // .. "epochs" | "steps"
  double first_factor = 0.04;             // one_cycle: first rate as a fraction of learning_rate
  double rise = 0.3;                      // one_cycle: share of the span in which the rate rises to learning_rate
  std::string anneal = "cosine";          // one_cycle: cosine | linear
};

struct ParallelConfig {       // [parallel]: one model on several ranks; a group of such ranks is a replica
  std::int64_t pipeline = 1;  // stages: consecutive layers on their own ranks; micro-batches are
                              // batch.accumulation
  std::int64_t tensor = 1;    // ranks that share the units of each layer
  std::int64_t recurrent_from =
      -1;                  // tensor: recurrent layers with fewer units stay whole; 0: all; -1: depends on the device
  std::int64_t space = 1;  // ranks that share the rows of images
  std::int64_t time_chunks = 1;     // pipeline: sequences are processed in this many chunks of time steps
  std::string split = "given";      // given: as set above | auto: chosen for the ranks and the memory limit
  std::string costs = "counted";    // stages are chosen by: counted FLOPs of layers | times measured on this device
  std::string schedule = "1f1b";    // pipeline: gpipe (all forwards first) | 1f1b (the same bubble, less memory)
  bool allow_across_nodes = false;  // ranks of one model may be on several hosts
};

struct ExchangeConfig {
  std::string strategy = "synchronous";
  std::string algorithm = "ring";        // all-reduce algorithm: a name of config/traits/algorithms.hpp
  Reduction reduction = Reduction::sum;  // how gradients of replicas are combined: "sum" | "adasum"
  Overlap overlap = Overlap::layers;     // "none": after back-propagation | "buckets": during it | "layers": also the
                                         // next forward, which waits layer by layer
  bool priority = true;                  // sends first the buckets that the next forward needs first; not mpi, nccl
  std::string codec = "none";            // code of gradients on the wire: none | a name of config/traits/codecs.hpp
  double density = 0.01;                 // topk: fraction of values sent; threshold: target fraction if tau = 0
  double tau = 0;                        // threshold: values of at least this magnitude are sent as +-tau; 0: adaptive
  std::string index_coding = "golomb";   // topk, threshold: raw | golomb | gamma
  bool error_feedback = true;            // lossy codecs: a message's error is added to the next one; else dropped
  bool code_sums = false;                // onebit: the owners of parts sum them and code the sums once more
  std::int64_t codec_warmup_steps = 0;   // steps at the start of the run that send uncoded gradients
  double bucket_mb = 4;                  // size of the gradients sent together, 0.001 to 4096
  double sparse_density = 0;  // above this mean share of touched rows, 0 to 1, a step sends a sparse table whole; 0:
                              // when that takes fewer bytes; 1: never
  double segment_kb = 256;    // pipelining grain of the algorithm, 1 to 1048576
  std::int64_t messages_in_flight = 8;  // per rank, over all its buckets, 1 to 1024
  std::int64_t helpers = 0;             // threads that sum and code, besides the one that sends and receives, 0 to 256
  std::int64_t servers = 0;             // algorithm or strategy server: ranks that each serve a part; 0: all
  std::string inner = "ring";           // algorithm hierarchical: within a host
  std::string outer = "ring";           // algorithm hierarchical: between hosts
  std::int64_t warmup_replicas = 0;     // strategies with own-pace replicas: number that train at first; 0: all
  std::int64_t warmup_steps = 0;        // .. for this many steps of each of these replicas
  double warmup_epochs = 0;             // .. or for this many epochs; fractions are allowed
  bool warmup_each_epoch = false;       // .. at the start of each epoch; false: only of the run
  std::int64_t verify_every_steps =
      0;                        // steps between comparisons of the replicas' weights; 0: only at step 0 and at the end
  bool check_messages = false;  // each message carries a CRC32C and its number, which the receiver checks
  bool fewer_workers = false;   // not a key: workers were lost; as many serve or are spare as the remaining ones permit
#define X(strategy, Keys, ...) Keys strategy = {};  // [exchange.<strategy>]
  ECHELON_STRATEGIES(X)
#undef X
};

struct NetworkConfig {              // [network]: messages are slowed down to those of another network (comm/shaped.hpp)
  std::string rate;                 // rate of a host's card per direction: "1gbit", "1gbit,1mbit" by host; "": none
  double delay_us = 0;              // latency of a message between hosts, 0 to 1e7
  std::int64_t ranks_per_host = 1;  // consecutive ranks that form a host for topology, placement and splits
};

struct DeviceConfig {
  std::string kind = "auto";       // auto | reference | onednn | cuda | paced
  std::vector<std::string> kinds;  // [rank on its host]; the last entry is for all further ranks; empty: kind
  DType dtype = DType::f32;      // "f32" | "f64" (reference, cuda) | "f16" | "bf16" (both: cuda, onednn); with the last
                                 // two weights stay f32
  bool emulate_halves = false;   // onednn, halves: computes in f32 on rounded values; runs on any CPU, slowly
  bool tf32 = false;             // f32: convolutions and products may round operands: cuda to TF32, onednn to bf16
  bool measure_layouts = false;  // onednn: layouts of convolutions by measurement at the start, not by a rule
  bool cuda_graphs = true;       // cuda: records sequences of ops and launches them as CUDA graphs
  bool allow_fallback = false;   // cuda: a slow plain loop runs convolutions that cuDNN cannot, instead of an error
  double workspace_mb = 1024;    // cuda: largest workspace for a convolution's algorithm
  double loss_scale = 0;         // factor on the loss in backward, a power of two; 0: dynamic for f16, else off
  std::int64_t threads = 0;      // per rank; 0: cores of the host / ranks on it
  double memory_limit_mb = 0;    // 0: none
  double paced_gflops = 50;      // for the paced device, or with pace_ms
  double paced_gb_per_s = 10;
  std::string paced_table;
  double pace_ms = 0;      // ops on the host compute, then sleep, so that a step's forward and backward take this long,
                           // split over the ops; -1: each op takes the time of paced_table and the rates; 0: off
  double pace_jitter = 0;  // a step's pace is multiplied by e^(this x a standard normal draw)
  double pace_spread = 0;  // the same for each rank's pace, by one draw per run
  std::vector<double> pace_factors;  // [rank]: factor on its pace; 1 for ranks beyond the list
};

struct EvaluateConfig {
  std::int64_t every_epochs = 1;     // 0: only at the end
  std::int64_t every_steps = 0;      // 0: off
  std::int64_t batch = 256;          // samples per rank and pass
  EvaluateBy by = EvaluateBy::all;   // "all" replicas share the data | only the "first" | "aside": another job
  std::vector<std::string> metrics;  // besides loss, accuracy, perplexity (train/class_counts.hpp)
  double train_fraction = 0;         // fraction of the training data to evaluate too; 0: none
};

struct CheckpointConfig {
  std::int64_t every_steps = 0;             // 0: off
  double every_minutes = 0;                 // 0: off
  std::int64_t every_epochs = 1;            // 0: off
  std::int64_t keep = 2;                    // number of newest checkpoints to keep
  GoalMetric keep_best = GoalMetric::none;  // as goal.metric: also keeps the best one by this figure
  bool asynchronous = true;                 // a thread writes during training, from a copy of the state
  bool verify = false;                      // reads back what was written before it counts
};

// The criteria for a run or a study (config/goal.hpp); a limit of 0 is off.
struct GoalConfig {
  GoalMetric metric = GoalMetric::none;  // "" | the names of GoalMetric
  double target = 0;                     // for the metric: at least this share of 1, at most this loss or perplexity
  bool stop = false;                     // training ends at the first evaluation that reaches the target
  double most_samples = 0;               // limit for samples to the target over those of the fewest ranks
  double least_efficiency = 0;           // scaling efficiency, in (0, 1]
  double greatest_cost = 0;              // cost of a run, in the currency of [cost]
  double deadline_h = 0;                 // limit for the hours of a run
};

// The conditions that a run monitors in itself while it trains (train/hooks/monitor.hpp).
struct MonitorConfig {
  Watch divergence = Watch::stop;        // by train.divergence_factor; "off" | "warn" | "stop", as for the others
  bool noise_scale = false;              // the gradient noise scale is measured
  Watch plateau = Watch::off;            // the loss stopped falling
  std::int64_t plateau_evaluations = 5;  // this many in a row without ..
  double plateau_change = 0.001;         // .. a loss below the best by this fraction of it
  Watch memory = Watch::warn;            // a rank's resident memory grows
  double memory_growth_mb = 1024;        // growth since the first samples that is reported if it continues
  Watch slow_rank = Watch::warn;         // a rank computes longer than others, or than before
  double slow_factor = 2;                // than the median rank, or than its own fastest median
  std::int64_t slow_steps = 50;          // steps over which medians are taken
  Watch throttling = Watch::warn;        // a GPU runs below its clock, because of heat or the host's power
  Watch out_of_time = Watch::warn;       // at its rate, the run will not end before Slurm ends the job
};

struct CostConfig {
  double node_hour = 0;          // price of an hour of one host; 0: not known
  double rank_hour = 0;          // the same for one rank, for services that bill cores or devices; added to node_hour
  std::string currency = "EUR";  // currency of these prices
};

struct RunConfig {
  std::string results = "results";       // folder that contains all runs
  Restart restart = Restart::automatic;  // "auto" | "never" | "require"
  std::string resume_from;               // folder of a run or attempt, or checkpoint file, to start from; "": none
  bool resume_weights_only = false;      // resume_from: loads only the weights and starts at step 0
  std::string replay;                    // folder of a run or attempt whose order of arrivals is replayed; "": none
  double heartbeat_s = 30;
  double hang_timeout_s = 300;                       // a wait longer than this ends the job with exit code 7
  OnLostWorker on_lost_worker = OnLostWorker::stop;  // "stop" | "continue"
  bool allow_faults = false;                         // [fault] may break this run deliberately
  double stop_before_end_s = 60;                     // time before the scheduler ends the job, as if USR1 came; 0: off
  std::string progress = "auto";                     // auto | bar | lines | none
  std::int64_t log_every_steps = 1;                  // interval of rows in metrics.jsonl
  bool measure_peak = false;                         // measures the device's peak at the end of a run
  std::string trace;                                 // "steps 10..20": the steps to trace (trace_steps.hpp); "": none
};

struct FaultConfig {
  std::vector<std::string> inject;  // deliberate faults, one sentence each (slurm/FAULTS.md); needs run.allow_faults
  std::uint64_t seed = 1;           // for random ranks, steps and bits
};

struct Config {
  std::string name = "run";  // results/<name>/
  std::uint64_t seed = 1;
  ModelConfig model;
  DataConfig data;
  BatchConfig batch;
  TrainConfig train;
  OptimiserConfig optimiser;  // [optimizer]
  ParallelConfig parallel;
  ExchangeConfig exchange;
  NetworkConfig network;
  DeviceConfig device;
  EvaluateConfig evaluate;
  CheckpointConfig checkpoint;
  GoalConfig goal;
  MonitorConfig monitor;
  CostConfig cost;
  RunConfig run;
  FaultConfig fault;
  std::string file;  // file that it was read from; not a key

  // Where values were given, for messages; not a key. "batch.global" -> "lenet.toml:7:10", "batch" -> the place of its
  // heading. Keys that were left at their defaults have no entry.
  std::map<std::string, std::string> origins;
};

}  // namespace echelon::inline config
