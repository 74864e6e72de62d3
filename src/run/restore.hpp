// SPDX-License-Identifier: Apache-2.0
// Brings a rank to the first step of an attempt: weights and state, from a file or from rank 0.
#pragma once

#include <memory>

#include "run/built.hpp"
#include "train/batch_draws.hpp"
#include "train/stepper.hpp"

namespace echelon::inline run {

// Takes up what `agreed.start` names: weights of a file, or the state of a checkpoint, whose position is fitted to the
// plan (fit_state). Collective; a first step sends rank 0's weights to all. Throws as load_weights, load_checkpoint and
// fit_state do, on all ranks.
void restore(const Phases& p);
// The source of a worker's batches if it is not its shard: data.balance = "queue", or samples that another number of
// replicas has left open; null otherwise, and on ranks that do not train. Collective over the workers.
std::unique_ptr<BatchDraws> make_draws(const Phases& p);
// Reads recurrent states, after the stepper was constructed at the position of the run. No effect for a first step, or
// if only weights are taken up.
void restore_carried(const Decision& start, Stepper& stepper);

}  // namespace echelon::inline run
