// Tiny experiments over the config space: what the pairwise test trains, checkpoints, resumes, evaluates, predicts
// with, exports and reports, in one process on ranks that are threads.
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
  std::string config;     // TOML; `data.train` and so on lie in the folder of write_row_data
  int ranks = 1;          // servers on ranks of their own included
  int hosts = 1;          // filled one after another
  bool same_bits = true;  // a resumed run ends with the bits of one that was not interrupted
  bool formula = true;    // the wire's bytes have one, and it counts this run's
  int ranks_a_host() const { return (ranks + hosts - 1) / hosts; }
  std::vector<int> hosts_of_ranks() const;
};
Experiment experiment_of(const std::vector<Axis>& axes, const PairwiseRow& row, const std::string& folder);

// Shards of every kind of data: images/, text/, sequences/, each with train/ and test/.
void write_row_data(const std::string& folder);

// What train's plan refuses, without starting it: combinations, batch, shards, model, mesh and parts. "" where the
// experiment may run, else the reason.
std::string plan_refusal(const Experiment& experiment);

// Check, train, resume, begin another run from the checkpoint, evaluate, predict, export and report, in `folder`, which
// holds the data; results go to `folder`/`name`. "ok", "refused: .." (by check, and by train alike), or "failed: .."
// with the first step that did not do what it should.
std::string run_experiment(const Experiment& experiment, const std::string& folder, const std::string& name);

}  // namespace echelon::test
