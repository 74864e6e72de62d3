// Replicas whose model is split over ranks, trained without files: beside the same run unsplit.
#pragma once

#include <string>

#include "config/schema.hpp"
#include "verify/replicas.hpp"

namespace echelon::verify {

struct SplitRun {
  ReplicaRun replicas;
  ParallelConfig parallel;  // allow_across_nodes: each rank on a host of its own

  int group_size() const { return static_cast<int>(parallel.pipeline * parallel.tensor * parallel.space); }
};

struct SplitResult {
  std::vector<double> gradients, weights;     // whole, in the order of the unsplit model's parameters
  double loss = 0;                            // of the last step, over all replicas
  std::vector<std::size_t> activation_bytes;  // by rank
  double correct = 0;                         // likewise: weighted predictions that were right
  double gradient_norm = -1;                  // of the last step, as every rank has it
  int skipped = 0;                            // steps, likewise
  double halo_bytes = 0;                      // sent in all steps, by all ranks
};

// Stacks of recurrent layers, beside small_sequence_models().
std::vector<NamedGraph> small_stacks();
// Two LSTMs that carry their states from step to step.
Graph small_carrying_stack();

// One rank's part, by the production StepRunner. Ranks are dealt out to the mesh in order.
SplitResult train_split_rank(std::unique_ptr<Transport> transport, const SplitRun& run);
// All ranks as threads. Throws where replicas of one part end with different bits.
SplitResult train_split(const SplitRun& run);

}  // namespace echelon::verify
