// SPDX-License-Identifier: Apache-2.0
// Tiny experiments over the config space. The pairwise test trains, checkpoints, resumes, evaluates, exports and
// reports them and predicts with them, in one process with ranks as threads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "tests/support/pairwise.hpp"

namespace echelon::test {

// Strategies, algorithms, codecs and rules come from their registries; the first value of each axis is neutral.
std::vector<Axis> config_axes();

struct Experiment {
  std::string config;     // TOML; `data.train` and the other paths lie in the folder that write_row_data filled
  int ranks = 1;          // includes servers on ranks of their own
  int hosts = 1;          // ranks fill one host after another
  bool same_bits = true;  // a resumed run ends with the bits of an uninterrupted one
  bool formula = true;    // the bytes on the wire follow a formula, which counts those of this run
  int ranks_a_host() const { return (ranks + hosts - 1) / hosts; }
  std::vector<int> hosts_of_ranks() const;
};
Experiment experiment_of(const std::vector<Axis>& axes, const PairwiseRow& row, const std::string& folder);

// Writes shards of every kind of data: images/, text/, sequences/, each with train/ and test/.
void write_row_data(const std::string& folder);

// Returns the reason for which train's plan refuses the experiment (combinations, batch, shards, model, mesh, parts),
// or "" where it may run. Starts no training.
std::string plan_refusal(const Experiment& experiment);

// Checks, trains, resumes, begins another run from the checkpoint, evaluates, predicts, exports and reports in
// `folder`, which holds the data; results go to `folder`/`name`. Returns "ok", "refused: .." (by check and by train
// alike), or "failed: .." with the first step that went wrong.
std::string run_experiment(const Experiment& experiment, const std::string& folder, const std::string& name);

}  // namespace echelon::test
