// SPDX-License-Identifier: Apache-2.0
// run.resume_from: a run that begins from a checkpoint of another run, with another config.
//
//   taken up        weights, always. Unless run.resume_weights_only: step, epoch and position in the data; states of
//                   the optimiser where both rules share them; residuals, and what else a strategy keeps, where
//                   strategy and codec are the same
//   initialised     all other state of this run; exchange.algorithm = "auto" tunes again. TakeUp::left_out lists the
//                   state of the checkpoint that is not used
//   must be equal   names and shapes of the tensors of the model; unless run.resume_weights_only, batch.global and the
//                   number of training samples, which define the position
#pragma once

#include <cstdint>
#include <string>

#include "config/schema.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

struct TakeUp {
  std::string checkpoint;       // path of the .h5 file; it was verified as a whole
  std::int64_t written_at = 0;  // step that it was written after
  bool weights_only = false;
  bool optimiser = false;  // states of the optimiser, and the loss scale
  bool residuals = false;  // what strategies and their codecs keep, on workers and servers
  std::string left_out;    // text "optimiser states left out: momentum; .."; "" where everything is taken up

  std::int64_t step() const { return weights_only ? 0 : written_at; }
};

// Returns what is taken up of the checkpoint that config.run.resume_from names. Reads files only; every byte of the
// checkpoint is verified. Called by rank 0. Throws ConfigError with the place of the key (no checkpoint there, another
// model, with the tensor, another global batch, another number of samples, or no step left to train), and DataError if
// a checkpoint file that was named is damaged.
TakeUp take_up(const Config& config, const RunPlan& plan);

// "from step 20 of another run: results/a/run-1450d256171e5f2a/checkpoints/step-00000020.h5; .. left out".
std::string take_up_text(const TakeUp& taken);

// If runs of the same name with other configs have checkpoints, returns a sentence with the newest one and
// run.resume_from; else "". Reads manifests and file sizes, and verifies nothing.
std::string other_runs_text(const Config& config);

}  // namespace echelon::inline run
