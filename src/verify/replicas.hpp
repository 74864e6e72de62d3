// SPDX-License-Identifier: Apache-2.0
// Replicas of a small model, trained without files. The tests "k replicas = 1 replica of the k-fold batch" run them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/transport.hpp"
#include "config/batch_plan.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"
#include "exchange/asynchronous/ledger.hpp"
#include "model/graph.hpp"
#include "optim/loss_scale.hpp"
#include "verify/trainer.hpp"

namespace echelon::verify {

// For each attempt and bucket, the order in which the servers of a rank applied arrivals.
using ServedOrders = std::vector<std::vector<LedgerBytes>>;

struct ReplicaRun {
  Graph graph;
  std::vector<std::int64_t> shares = {8};  // [replica] samples per step
  std::int64_t accumulation = 1;           // micro-batches into which a replica splits its share
  Overlap overlap = Overlap::layers;
  std::string strategy = "synchronous", algorithm = "ring";
  Reduction reduction = Reduction::sum;  // strategy synchronous
  AveragingKeys averaging = {};          // strategy averaging
  ElasticKeys elastic = {};              // strategy elastic
  AsynchronousKeys asynchronous = {};    // strategies asynchronous and stale_synchronous
  std::int64_t bound = 3;                // strategy stale_synchronous
  GossipKeys gossip = {};                // strategy gossip
  BackupKeys backup = {};                // strategy backup
  StromKeys strom = {};                  // strategy strom
  std::int64_t steps_per_epoch = 1;      // strategy averaging: for synchronous_epochs; nothing else depends on it
  int servers = 0, server_ranks = 0;     // strategies with servers: on the replicas' ranks, or on ranks of their own
  ServerPartition partition = ServerPartition::ranges;  // strategies with servers: how the model is divided
  std::string codec = "none";
  double density = 0.05, tau = 0;
  bool error_feedback = true, code_sums = false;
  std::int64_t codec_warmup = 0;     // steps before the codec takes effect
  std::string device = "reference";  // as in the config, or a name of open_other_device
  std::string card = {};             // device far: one for every replica; empty: each its own
  DType dtype = DType::f64;
  DType activations = DType::f64;  // a half together with dtype f32: mixed precision
  int steps = 20;
  double bucket_kb = 1;       // small, so that there are several buckets
  bool reversed = false;      // each replica takes its samples in reverse order
  std::int64_t first_id = 0;  // first sample of the first step
  bool one_batch = false;     // every step uses the samples of the first step
  bool holes = false;         // every seventh sample has weight 0
  double learning_rate = 0.05, momentum = 0.9, weight_decay = 1e-3;
  bool nesterov = false, momentum_before_coding = false;
  std::string rule = "sgd";
  double clip_norm = 0;
  LossScaling scaling = {};
  double sparse_density = 0;
  bool lazy = false;
  std::int64_t micro_shards = 0;            // train.reproducible: parts of the step's batch over all replicas; 0: off
  int resume_at = -1;                       // before this step everything is rebuilt from the content of checkpoints
  double pause_s = 0;                       // longest pause of a replica before a step; each pause is random
  double slow_s = 0;                        // additional pause of replica 0 before each step
  std::vector<std::string> sets = {};       // further settings, as for --set; they come last
  std::vector<ServedOrders> recorded = {};  // [rank] orders that asynchronous servers repeat; empty: as messages arrive

  int replicas() const { return static_cast<int>(shares.size()); }
  int ranks() const { return replicas() + server_ranks; }
};

// A step that a replica took.
struct TakenStep {
  std::int64_t step = 0, next_step = 0;
  bool entered = true;   // its gradient entered the update
  bool skipped = false;  // its gradients were not finite
};

struct ReplicaResult {
  std::vector<double> gradients;         // gradients of step 1, summed over replicas
  std::vector<double> weights;           // weights after the last step
  int skipped = 0;                       // skipped steps
  double gradient_norm = -1;             // gradient norm of the last step, if measured
  double loss = 0;                       // sum over this replica's samples of the last step
  double correct = 0;                    // last step's weighted correct predictions
  double all_losses = 0;                 // `loss` summed over replicas; filled by train_replicas
  std::vector<double> step_losses;       // reproducible: sum of the losses over all samples, by step
  double formula_bytes = 0;              // bytes per step over all ranks, by formula
  double drift = -1;                     // StepOutcome::drift of this rank's last step
  double residual_norm = 0;              // CodecRecord::residual_norm of this rank's last step
  double sent_bytes = 0;                 // sent by this rank for gradients and weights in all steps
  std::vector<std::uint64_t> checksums;  // [replica] checksum of the weights; filled by train_replicas
  // [replica]; filled by train_replicas.
  std::vector<std::vector<TakenStep>> taken;
  std::vector<ServedOrders> orders;  // [rank]; filled by train_replicas
};

// The same run on one replica, whose batch is that of all. `groups`: keeps the micro-batches of all replicas.
ReplicaRun on_one_replica(ReplicaRun run, bool groups);

// Returns the samples of a step over all replicas.
PlainBatch step_batch(const ReplicaRun& run, std::int64_t step);
ExchangeConfig exchange_of(const ReplicaRun& run);
OptimiserConfig optimiser_of(const ReplicaRun& run);
// Returns the config that Attempt would get, without data and model, which come from memory.
Config config_of(const ReplicaRun& run);
BatchPlan batch_plan_of(const ReplicaRun& run);
// Opens devices that exist only in tests; returns null for other names. Must be set before any run.
inline std::unique_ptr<Device> (*open_other_device)(const ReplicaRun& run, int rank) = nullptr;
// Opens the device of this rank of a group.
std::unique_ptr<Device> device_of(const ReplicaRun& run, int rank);

// Runs one rank's part with the production StepRunner. The transport must have as many ranks as the run has replicas
// and servers. Step t takes samples [t*B, (t+1)*B), dealt to replicas and micro-batches in order.
ReplicaResult train_replica(std::unique_ptr<Transport> transport, const ReplicaRun& run);
// Runs all ranks as threads and returns rank 0's result. Throws if replicas end with different bits.
ReplicaResult train_replicas(const ReplicaRun& run);

// Returns the largest max|a-b| / max|b| of any parameter tensor, which defines "same weights".
double tensor_distance(const ParameterSet& parameters, const std::vector<double>& a, const std::vector<double>& b);

struct NamedGraph {
  const char* name;
  Graph graph;
};

// Shrunken versions of zoo models: the same graph on a small input.
std::vector<NamedGraph> small_sequence_models();  // every model of sequences in the zoo
Graph small_digits_cnn();
Graph small_cnn();
Graph small_resnet20();
Graph small_dropout_net();  // dropout of an image and of features
Graph small_batch_norm_net(const ModelConfig& norms = {},
                           std::int64_t rows = 5);  // convolutions without bias, batch norm, a residual add
Graph small_tall_net();                             // the same on images of 7 rows

}  // namespace echelon::verify
