// run.resume_from: a run that begins from a checkpoint of another one, whose config is another.
//
//   taken up        weights, always. Unless run.resume_weights_only: step, epoch and position in the data; states of
//                   the optimiser where both rules share them; residuals where strategy and codec are the same
//   begins anew     whatever else this run keeps; exchange.algorithm = "auto" tunes again. What is left out is said in
//                   TakeUp::left_out
//   must be equal   names and shapes of the model's tensors; unless run.resume_weights_only, batch.global and the
//                   number of training samples, by which the position counts
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
  bool optimiser = false;  // its states, and the loss's scale
  bool residuals = false;  // what codecs, and servers with codecs, keep
  std::string left_out;    // for people: "optimiser states left out: momentum; .."; "" where everything is taken up

  std::int64_t step() const { return weights_only ? 0 : written_at; }
};

// Of the checkpoint that config.run.resume_from names. Reads its file alone; every byte is verified. Throws ConfigError
// with the place of the key: nothing is saved there, another model (naming the tensor), another global batch, another
// number of samples, or no step that is left to train; DataError where a checkpoint file that was named is damaged.
TakeUp take_up(const Config& config, const RunPlan& plan);

// "from step 20 of another run: results/a/run-1450d256171e5f2a/checkpoints/step-00000020.h5; .. left out".
std::string take_up_text(const TakeUp& taken);

// Where runs of the same name but of other configs have checkpoints: a sentence that names the newest one and
// run.resume_from; else "". By a glance at the files.
std::string other_runs_text(const Config& config);

}  // namespace echelon::inline run
