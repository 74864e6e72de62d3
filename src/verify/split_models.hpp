// SPDX-License-Identifier: Apache-2.0
// Trains replicas whose model is split over ranks, without files, for comparison with the same run unsplit.
#pragma once

#include <string>

#include "config/schema.hpp"
#include "verify/replicas.hpp"

namespace echelon::verify {

struct SplitRun {
  ReplicaRun replicas;
  ParallelConfig parallel;  // allow_across_nodes: each rank is on its own host

  int group_size() const { return static_cast<int>(parallel.pipeline * parallel.tensor * parallel.space); }
};

struct SplitResult {
  std::vector<double> gradients, weights;     // the whole model's, in the order of its parameters
  double loss = 0;                            // last step, over all replicas
  std::vector<std::size_t> activation_bytes;  // [rank]
  double correct = 0;                         // last step, over all replicas: weighted correct predictions
  double gradient_norm = -1;                  // last step, equal on every rank
  int skipped = 0;                            // skipped steps
  double halo_bytes = 0;                      // sent in all steps by all ranks
  double sent_bytes = 0;                      // the same, with all that ranks of a model group send each other
};

// Stacks of recurrent layers, in addition to small_sequence_models().
std::vector<NamedGraph> small_stacks();
// Two LSTMs that carry their states from step to step.
Graph small_carrying_stack();

// Runs one rank's part with the production StepRunner. Ranks are assigned to the mesh in order.
SplitResult train_split_rank(std::unique_ptr<Transport> transport, const SplitRun& run);
// Runs all ranks as threads. Throws if replicas of one part end with different bits.
SplitResult train_split(const SplitRun& run);

}  // namespace echelon::verify
