// SPDX-License-Identifier: Apache-2.0
// Trains one experiment in two ways and checks what must be equal between the runs.
#pragma once

#include <string>
#include <vector>

#include "tests/run/trial.hpp"

namespace echelon::test {

// One command `echelon train`.
struct Leg {
  int ranks = 0;  // 0: without mpirun
  Sets sets = {};
  std::string says = {};  // text that the command must print
};

// A run that ended well.
struct TrainedRun {
  const Trial& trial;
  std::string name;
  std::string out;  // output of its last command

  nlohmann::json summary() const { return trial.summary(name); }
  // Returns the data sets of its last checkpoint under this prefix.
  std::vector<double> values(const std::string& prefix) const;
};

// Trains the run of this name by one command after another, each of which resumes the run; each must end with 0
// (REQUIRE). The settings of `all` come before those of a leg.
TrainedRun train_run(const Trial& trial, const std::string& name, const std::vector<Leg>& legs, const Sets& all = {});

// Tells what is compared between two runs.
struct Compared {
  std::string part = "weights/";  // data sets of the last checkpoints; "": all, with optimiser and residuals
  double within = 0;              // largest relative difference; 0: the same bits
  bool evaluation = false;        // the last test_loss (to 1e-9 at least) and test_accuracy
  // Number of records in metrics.jsonl that are compared to the bit, without their times; 0: none.
  std::size_t steps = 0;   // compares step, epoch, learning rate, loss, gradient norm
  std::size_t epochs = 0;  // compares epoch, learning rate, losses, accuracy
};
void check_equal(const TrainedRun& run, const TrainedRun& expected, const Compared& compared = {});

}  // namespace echelon::test
