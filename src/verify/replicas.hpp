// Replicas of a small model, trained without files: what the tests of "k replicas = 1 replica of the k-fold batch" run.
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

// The order in which the servers of a rank took up what came, of each attempt, by bucket.
using ServedOrders = std::vector<std::vector<LedgerBytes>>;

struct ReplicaRun {
  Graph graph;
  std::vector<std::int64_t> shares = {8};  // samples a step, by replica
  std::int64_t accumulation = 1;           // micro-batches a replica splits its share into
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
  std::int64_t steps_per_epoch = 1;      // strategy averaging: of synchronous_epochs; nothing else ends with an epoch
  int servers = 0, server_ranks = 0;     // strategies with servers: inside the replicas, or on ranks of their own
  ServerPartition partition = ServerPartition::ranges;  // likewise: what lies on each
  std::string codec = "none";
  double density = 0.05, tau = 0;
  bool error_feedback = true;
  std::int64_t codec_warmup = 0;     // steps before the codec starts
  std::string device = "reference";  // as in the config, or one of open_other_device
  std::string card = {};             // far: of every replica; empty: each its own
  DType dtype = DType::f64;
  DType activations = DType::f64;  // a half beside dtype f32: mixed precision
  int steps = 20;
  double bucket_kb = 1;       // small, so that there are several
  bool reversed = false;      // each replica takes its samples in reverse order
  std::int64_t first_id = 0;  // sample that the first step begins with
  bool one_batch = false;     // every step takes the samples of the first
  bool holes = false;         // every seventh sample has weight 0
  double learning_rate = 0.05, momentum = 0.9, weight_decay = 1e-3;
  std::string rule = "sgd";
  double clip_norm = 0;
  LossScaling scaling = {};
  double sparse_density = 0;
  bool lazy = false;
  std::int64_t micro_shards = 0;            // train.reproducible: parts of the step's batch, over all replicas; 0: off
  int resume_at = -1;                       // before this step all is made anew, from what checkpoints hold
  double pause_s = 0;                       // longest pause of a replica before a step; each is drawn
  double slow_s = 0;                        // pause of replica 0 before each step, beside that
  std::vector<ServedOrders> recorded = {};  // by rank: repeated by asynchronous servers; empty: as it comes

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
  std::vector<double> gradients;         // of step 1, summed over replicas
  std::vector<double> weights;           // after the last step
  int skipped = 0;                       // steps
  double gradient_norm = -1;             // of the last step, where it was measured
  double loss = 0;                       // sum over this replica's samples of the last step
  double correct = 0;                    // likewise: weighted predictions that were right
  double all_losses = 0;                 // likewise, over all replicas; train_replicas fills it
  std::vector<double> step_losses;       // reproducible: sums over all samples of each step
  double formula_bytes = 0;              // a step, all ranks
  double drift = -1;                     // StepOutcome::drift of this rank's last step
  double residual_norm = 0;              // likewise: CodecRecord::residual_norm
  double sent_bytes = 0;                 // by this rank for gradients and weights, over all steps
  std::vector<std::uint64_t> checksums;  // of the weights, by replica; train_replicas fills it
  // By replica; train_replicas fills it.
  std::vector<std::vector<TakenStep>> taken;
  std::vector<ServedOrders> orders;  // likewise, by rank
};

// The same run on one replica: its batch is everybody's; cut into the very micro-batches of all where `groups`.
ReplicaRun on_one_replica(ReplicaRun run, bool groups);

// Samples of a step, over all replicas.
PlainBatch step_batch(const ReplicaRun& run, std::int64_t step);
ExchangeConfig exchange_of(const ReplicaRun& run);
OptimiserConfig optimiser_of(const ReplicaRun& run);
// What Attempt would be given; data and model, which come from memory, left out.
Config config_of(const ReplicaRun& run);
BatchPlan batch_plan_of(const ReplicaRun& run);
// Devices that are no kind of the product, of tests: null for other names. Set before any run.
inline std::unique_ptr<Device> (*open_other_device)(const ReplicaRun& run, int rank) = nullptr;
// Of this rank of a group.
std::unique_ptr<Device> device_of(const ReplicaRun& run, int rank);

// One rank's part, by the production StepRunner; the transport has as many ranks as the run has replicas and servers.
// Step t takes samples [t*B, (t+1)*B), dealt out to replicas and micro-batches in order.
ReplicaResult train_replica(std::unique_ptr<Transport> transport, const ReplicaRun& run);
// All ranks as threads; rank 0's result. Throws where replicas end with different bits.
ReplicaResult train_replicas(const ReplicaRun& run);

// Largest max|a-b| / max|b| of any parameter tensor (SYSTEMS: "same weights").
double tensor_distance(const ParameterSet& parameters, const std::vector<double>& a, const std::vector<double>& b);

struct NamedGraph {
  const char* name;
  Graph graph;
};

// Shrunken siblings: the same graph on a small input.
std::vector<NamedGraph> small_sequence_models();  // every model of sequences in the zoo
Graph small_digits_cnn();
Graph small_cnn();
Graph small_resnet20();
Graph small_dropout_net();  // dropout of an image and of features
Graph small_batch_norm_net(const ModelConfig& norms = {},
                           std::int64_t rows = 5);  // convolutions without bias, batch norm, a residual add
Graph small_tall_net();                             // the same on images of 7 rows

}  // namespace echelon::verify
