// The experiment, typed. Plain values with their defaults; every unit is in the name. This file is the reference of all
// keys: config/keys/ lists them again with range and help text for the parser, and a test compares the two. Keys
// of one strategy alone, [exchange.<strategy>], are in config/strategies/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
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
enum class GoalMetric : std::uint8_t { none, test_accuracy, test_loss, test_perplexity };
enum class EvaluateBy : std::uint8_t { all, first, aside };
enum class Watch : std::uint8_t { off, warn, stop };

// One [[model.layers]] entry. Which keys a type takes is in config/traits/layers.hpp; others are refused.
struct LayerConfig {
  // conv | max_pool | avg_pool | global_avg_pool | dense | relu | tanh | sigmoid | gelu | batch_norm | layer_norm | lrn
  // | dropout | flatten | add | concat | position | attention | sequence_pool | embedding | rnn | lstm | gru
  std::string type;
  std::string name;                    // default: type and a number, "conv1"
  std::vector<std::string> inputs;     // default: the layer before
  std::int64_t stage = -1;             // parallel.pipeline: its stage; -1: chosen by cost
  std::int64_t channels = 0;           // conv: output channels, > 0
  std::int64_t units = 0;              // dense: output units; embedding: features; rnn, lstm, gru: size of the state
  std::vector<std::int64_t> kernel;    // conv, pools: [rows, columns] or one number
  std::vector<std::int64_t> stride;    // default 1 (conv), the kernel (pools)
  std::vector<std::int64_t> padding;   // default 0
  std::vector<std::int64_t> dilation;  // conv, default 1
  std::int64_t groups = 1;             // conv
  bool bias = true;                    // conv, dense
  bool count_padding = false;          // avg_pool: padding is counted in the divisor
  double epsilon = 1e-5;               // batch_norm, layer_norm
  double momentum = 0.1;               // batch_norm: weight of the newest statistics
  bool synchronised = false;           // batch_norm: statistics over all replicas' samples
  bool renorm = false;                 // batch_norm: corrected towards the running statistics (Ioffe 2017)
  double r_max = 3;                    // batch_norm with renorm: the correction's factor within [1/r_max, r_max]
  double d_max = 5;                    // batch_norm with renorm: its shift within [-d_max, d_max]
  double rate = 0.5;                   // dropout: share of zeros, in [0, 1)
  std::int64_t size = 5;               // lrn: channels of a window, > 0
  double alpha = 1e-4;                 // lrn
  double beta = 0.75;                  // lrn
  double k = 1;                        // lrn, > 0
  std::int64_t heads = 1;              // attention
  bool causal = false;                 // attention: later positions are masked
  std::string mode = "mean";           // sequence_pool: sum | mean | last
  std::int64_t vocabulary = 0;         // embedding: rows of the table; 0: as many as the data has tokens
  bool sparse = false;  // embedding: sparse gradient: only the rows that a step touches are stored, applied and sent
  std::string activation = "tanh";  // rnn: tanh | relu
  bool reverse = false;             // rnn, lstm, gru: from the end of the sequence to its beginning
  bool carry = false;  // rnn, lstm, gru: the final states of a batch are the initial states of the next one
  std::string where;   // "file:line", for messages; no key
};

struct ModelConfig {
  std::string zoo;                  // a ready-made model; else layers
  std::vector<LayerConfig> layers;  // the loss follows by itself
  std::string loss = "auto";        // auto (softmax over classes, mse of numbers) | softmax | mse | bce
  double label_smoothing = 0;       // softmax: fraction of the target spread over all classes in training, in [0, 1)
  bool synchronised_batch_norm = false;  // every batch_norm layer is `synchronised`
  bool batch_renorm = false;             // every batch_norm layer has `renorm`
  bool dense_embeddings = false;         // no embedding is `sparse`, also of model.zoo
  std::string weights;                   // initial ones: a .safetensors file, a run's folder or a checkpoint; "": drawn
  bool weights_partial = false;          // weights: tensors that it lacks, or has in another shape, are drawn
  std::vector<std::string> freeze;       // patterns of layers or parameters that training leaves as they are
};

struct DataConfig {
  std::string train;                        // folder, file or pattern of HDF5 shards; relative to the working directory
  std::string test;                         // "" : no evaluation
  Sharding sharding = Sharding::automatic;  // "auto" | "file" | "record" | "node" | "replicated"
  Ragged ragged = Ragged::wrap;             // "wrap" | "drop" | "zero_weight"
  Balance balance = Balance::fixed;         // "static": shards | "queue": replicas draw batches as they need them
                                            // | "speed": replicas share each step by their measured speed
  double fraction = 1;  // of the samples that is trained on: the first ones of a seeded permutation, 1e-6 to 1
  bool shuffle = true;
  Order order = Order::samples;  // "samples": as above | "stream": text, each row of a batch reads on
  std::int64_t sequence_length =
      0;  // text: tokens of a window, 0: 64; sequences: truncated to this length, 0: the longest
  std::vector<std::int64_t> buckets;  // sequences of up to these lengths share steps; one number: so many; empty: off
  std::int64_t augment_crop_padding = 0;  // images: zeros around them, then a random crop of their size; training only
  bool augment_flip = false;              // images: left and right change places in half of them; training only
  std::int64_t prefetch = 2;              // batches, 1 to 64
  double buffer_mb = 64;                  // of decoded records a rank, 1 to 65536
  std::int64_t window_chunks = 16;        // number of chunks whose records are shuffled together, 1 to 4096
  std::string stage;                      // folder on a disk of each host into which shards are copied; "": none
  double stage_limit_gb = 0;              // of its copies, 10^9 bytes; 0: what the disk has
  std::int64_t as_replicas =
      0;  // one replica processes the samples of this many replicas; 0: off. For equality studies
};

struct BatchConfig {
  std::int64_t global = 64;          // samples a step over all replicas; 0: all there are
  std::int64_t accumulation = 1;     // micro-batches of a replica for each exchange
  std::vector<std::int64_t> shares;  // by replica; default equal
  bool scale_with_replicas = false;  // weak scaling: `global` is meant for one replica and grows with k
  bool nearly_equal = false;  // no key: workers were lost, and `global` is cut into parts that differ by a micro-batch
};

struct TrainConfig {
  std::int64_t epochs = 1;        // 0: by steps alone
  std::int64_t steps = 0;         // stop after this many updates; 0: train.epochs ends the run
  bool reproducible = false;      // 1, 2, 4, .. up to micro_shards replicas end with the same bits
  double divergence_factor = 10;  // ends the run: 20 losses in a row above this x max(1, the first step's); 0: off
  std::int64_t micro_shards = 8;  // reproducible: equal parts of a step's batch, each one pass; a power of two
};

struct OptimiserConfig {     // [optimizer]
  std::string rule = "sgd";  // sgd | adam | adamw | rmsprop | lars | lamb
  double learning_rate = 0.01;
  double momentum = 0.9;              // sgd, rmsprop, lars
  double weight_decay = 0.0;          // not on biases and batch norm
  bool nesterov = false;              // sgd
  double beta1 = 0.9;                 // adam, adamw, lamb: decay of the first moment
  double beta2 = 0.999;               // adam, adamw, lamb: decay of the second moment
  double alpha = 0.99;                // rmsprop: decay of the mean square
  double epsilon = 1e-8;              // adam, adamw, lamb, rmsprop: added to the root of the second moment
  double trust_coefficient = 0.001;   // lars: eta of a layer's rate eta*|w| / (|g| + decay*|w|)
  bool lazy = false;                  // sparse embeddings: only touched rows are updated, also by momentum and decay
  double clip_norm = 0;               // the gradient's norm over all weights is cut to this; 0: off
  std::string scaling = "none";       // none | linear | sqrt: learning_rate is for base_batch, grows with batch.global
  std::int64_t base_batch = 0;        // scaling: samples a step that learning_rate is meant for
  std::string schedule = "constant";  // constant | step | cosine | polynomial
  double warmup_epochs = 0;
  std::vector<double> decay_at_epochs;  // step
  double decay_factor = 0.1;            // step
  double final_factor = 0.0;            // cosine, polynomial: final learning rate as a fraction of learning_rate
  double power = 1.0;                   // polynomial
  std::int64_t schedule_epochs = 0;     // cosine, polynomial: epochs that the schedule spans; 0: those of the run
};

struct ParallelConfig {       // [parallel]: one model on several ranks; groups of these ranks are the replicas
  std::int64_t pipeline = 1;  // stages: consecutive layers on ranks of their own; micro-batches are
                              // batch.accumulation
  std::int64_t tensor = 1;    // ranks that share the units of each layer
  std::int64_t recurrent_from =
      -1;                  // tensor: recurrent layers of fewer units stay whole; 0: all; -1: depends on the device
  std::int64_t space = 1;  // ranks that share the rows of images
  std::int64_t time_chunks = 1;     // pipeline: sequences are processed in this many chunks of time steps
  std::string split = "given";      // given: as written above | auto: chosen for the ranks and the memory limit
  std::string costs = "counted";    // of layers, from which stages are chosen: counted FLOPs | measured on this device
  std::string schedule = "1f1b";    // pipeline: gpipe (all forwards first) | 1f1b (the same bubble, less memory)
  bool allow_across_nodes = false;  // ranks of one model may lie on several hosts
};

struct ExchangeConfig {
  std::string strategy = "synchronous";
  std::string algorithm = "ring";        // of the all-reduce: a name of config/traits/algorithms.hpp
  Reduction reduction = Reduction::sum;  // of gradients over replicas: "sum" | "adasum"
  Overlap overlap = Overlap::layers;     // "none": after back-propagation | "buckets": beside it | "layers": and the
                                         // next forward waits layer by layer
  bool priority = true;                  // buckets that the next forward needs first are sent first; not mpi, nccl
  std::string codec = "none";            // of gradients on the wire: none | a name of config/traits/codecs.hpp
  double density = 0.01;  // topk: fraction of the values that is sent; threshold: target fraction of tau = 0
  double tau = 0;         // threshold: values of this size and more are sent as +-tau; 0: adapts
  std::string index_coding = "golomb";  // topk, threshold: raw | golomb | gamma
  bool error_feedback = true;           // lossy codecs: what a message left out is added to the next one; else dropped
  std::int64_t codec_warmup_steps = 0;  // number of steps at the start of the run that send uncoded gradients
  double bucket_mb = 4;                 // gradients sent together, 0.001 to 4096
  double sparse_density = 0;  // a step sends a sparse table whole where replicas touch more than this share of
                              // its rows on average, 0 to 1; 0: where that takes fewer bytes; 1: never
  double segment_kb = 256;    // pipelining grain of the algorithm, 1 to 1048576
  std::int64_t messages_in_flight = 8;  // of one rank, over all its buckets, 1 to 1024
  std::int64_t helpers = 0;             // threads that sum and code beside the one that sends and receives, 0 to 256
  std::int64_t servers = 0;             // algorithm or strategy server: ranks that serve a part each; 0: all
  std::string inner = "ring";           // algorithm hierarchical: inside a host
  std::string outer = "ring";           // algorithm hierarchical: between hosts
  std::int64_t warmup_replicas = 0;  // strategies whose replicas step at their own pace: so many train at first; 0: all
  std::int64_t warmup_steps = 0;     // .. for this many steps of each of them
  double warmup_epochs = 0;          // .. or for this many epochs, or a fraction of one
  bool warmup_each_epoch = false;    // .. at the beginning of each epoch; false: of the run
  std::int64_t verify_every_steps =
      0;                        // interval of comparisons of the replicas' weights; 0: only at step 0 and at the end
  bool check_messages = false;  // each message carries a CRC32C and its number, which its receiver compares
  bool fewer_workers = false;   // no key: some were lost, and as many serve or are spare as those that are left permit
#define X(strategy, Keys, ...) Keys strategy = {};  // [exchange.<strategy>]
  ECHELON_STRATEGIES(X)
#undef X
};

struct NetworkConfig {              // [network]: messages are slowed down to those of another one (comm/shaped.hpp)
  std::string rate;                 // of a host's card, each direction: "1gbit", "1gbit,1mbit" by host; "": none
  double delay_us = 0;              // of a message between hosts, 0 to 1e7
  std::int64_t ranks_per_host = 1;  // consecutive ranks that stand for a host: topology, placement and splits see them
};

struct DeviceConfig {
  std::string kind = "auto";       // auto | reference | onednn | cuda | paced
  std::vector<std::string> kinds;  // by rank on its host, the last for all further ones; empty: kind
  DType dtype = DType::f32;  // "f32" | "f64" (reference, cuda) | "f16" (cuda) | "bf16" (cuda, onednn); the last two are
                             // those of activations, weights stay f32
  bool emulate_halves = false;  // onednn, bf16: f32 on rounded values, on any CPU, slow
  bool tf32 = false;            // f32: convolutions and products may round operands, cuda to TF32, onednn to bf16
  bool cuda_graphs = true;      // cuda: sequences of ops are recorded and launched as CUDA graphs
  bool allow_fallback = false;  // cuda: a convolution that cuDNN cannot run is a plain loop, slow, instead of an error
  double workspace_mb = 1024;   // cuda: largest workspace of a convolution's algorithm
  double loss_scale = 0;        // the loss is scaled by this in backward; 0: dynamic for f16, else off. A power of two
  std::int64_t threads = 0;     // of one rank; 0: cores of the host / ranks on it
  double memory_limit_mb = 0;   // 0: none
  double paced_gflops = 50;     // paced, or pace_ms
  double paced_gb_per_s = 10;
  std::string paced_table;
  double pace_ms = 0;      // ops on the host compute, then sleep: forward and backward of a step take so long, divided
                           // over the ops; -1: each op takes the time of paced_table and the rates; 0: off
  double pace_jitter = 0;  // a step's pace is multiplied by e^(this x a standard normal draw)
  double pace_spread = 0;  // likewise each rank's, by one draw for the run
  std::vector<double> pace_factors;  // by rank: its pace is multiplied by this; 1 for ranks beyond the list
};

struct EvaluateConfig {
  std::int64_t every_epochs = 1;     // 0: only at the end
  std::int64_t every_steps = 0;      // 0: off
  std::int64_t batch = 256;          // samples a rank and pass
  EvaluateBy by = EvaluateBy::all;   // "all" replicas share the data | the "first" alone | "aside": another job
  std::vector<std::string> metrics;  // beside loss, accuracy, perplexity (train/class_counts.hpp)
  double train_fraction = 0;         // share of the training data that is evaluated too; 0: none
};

struct CheckpointConfig {
  std::int64_t every_steps = 0;             // 0: off
  double every_minutes = 0;                 // 0: off
  std::int64_t every_epochs = 1;            // 0: off
  std::int64_t keep = 2;                    // newest ones kept
  GoalMetric keep_best = GoalMetric::none;  // as goal.metric: the best by this figure is kept too
  bool asynchronous = true;                 // written by a thread beside training, from a copy of the state
  bool verify = false;                      // what was written is read back before it counts
};

// What a run or a study is judged by (config/goal.hpp); a limit of 0 judges nothing.
struct GoalConfig {
  GoalMetric metric = GoalMetric::none;  // "" | "test_accuracy" | "test_loss" | "test_perplexity"
  double target = 0;                     // of the metric: at least this accuracy, at most this loss or perplexity
  bool stop = false;                     // training ends at the first evaluation that reaches it
  double most_samples = 0;               // samples to the target, over those of the fewest ranks: at most
  double least_efficiency = 0;           // of the scaling, in (0, 1]
  double greatest_cost = 0;              // of a run, in [cost]'s currency
  double deadline_h = 0;                 // a run's hours: at most
};

// What a run watches about itself while it trains (train/hooks/monitor.hpp).
struct MonitorConfig {
  Watch divergence = Watch::stop;        // by train.divergence_factor; "off" | "warn" | "stop", as the others
  bool noise_scale = false;              // the gradient noise scale is measured
  Watch plateau = Watch::off;            // the loss no longer falls
  std::int64_t plateau_evaluations = 5;  // so many in a row without ..
  double plateau_change = 0.001;         // .. a loss below the best by this fraction of it
  Watch memory = Watch::warn;            // a rank's resident memory climbs
  double memory_growth_mb = 1024;        // above what it was after the first samples, and still rising
  Watch slow_rank = Watch::warn;         // a rank computes longer than others, or than it did
  double slow_factor = 2;                // than the median rank, or than its own fastest median
  std::int64_t slow_steps = 50;          // steps over which medians are taken
  Watch throttling = Watch::warn;        // a GPU runs below its clock, for heat or the host's power
  Watch out_of_time = Watch::warn;       // at its rate the run ends after Slurm ends the job
};

struct CostConfig {
  double node_hour = 0;          // price of an hour of one host; 0: not known
  double rank_hour = 0;          // likewise of one rank, for services that bill cores or devices; beside node_hour
  std::string currency = "EUR";  // of the price
};

struct RunConfig {
  std::string results = "results";       // folder of all runs
  Restart restart = Restart::automatic;  // "auto" | "never" | "require"
  std::string resume_from;               // folder of a run or attempt, or checkpoint file, to begin from; "": none
  bool resume_weights_only = false;      // resume_from: take up the weights alone and begin at step 0
  std::string replay;                    // folder of a run or attempt whose order of arrivals is repeated; "": none
  double heartbeat_s = 30;
  double hang_timeout_s = 300;                       // a wait longer than this ends the job with exit code 7
  OnLostWorker on_lost_worker = OnLostWorker::stop;  // "stop" | "continue"
  bool allow_faults = false;                         // [fault] may break this run on purpose
  double stop_before_end_s = 60;                     // before the scheduler ends the job, as if USR1 came; 0: off
  std::string progress = "auto";                     // auto | bar | lines | none
  std::int64_t log_every_steps = 1;                  // rows of metrics.jsonl
  bool measure_peak = false;                         // of the device, at the end of a run
  std::string trace;                                 // "steps 10..20": traced (trace_steps.hpp); "": none
};

struct FaultConfig {
  std::vector<std::string> inject;  // faults on purpose, one sentence each (slurm/FAULTS.md); needs run.allow_faults
  std::uint64_t seed = 1;           // of random ranks, steps and bits
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
  std::string file;  // where it was read from; no key

  // Where values were given, for messages; no key. "batch.global" -> "lenet.toml:7:10", "batch" -> its heading's place;
  // keys left at their defaults have no entry.
  std::map<std::string, std::string> origins;
};

}  // namespace echelon::inline config
