// Runs of one experiment, trained in two ways, and what must be equal between them.
#pragma once

#include <string>
#include <vector>

#include "tests/run/trial.hpp"

namespace echelon::test {

// One command `echelon train`.
struct Leg {
  int ranks = 0;  // 0: without mpirun
  Sets sets = {};
  std::string says = {};  // part of what it must print
};

// A run that has ended well.
struct TrainedRun {
  const Trial& trial;
  std::string name;
  std::string out;  // what its last command printed

  nlohmann::json summary() const { return trial.summary(name); }
  // The data sets of its last checkpoint under this prefix.
  std::vector<double> values(const std::string& prefix) const;
};

// Trains the run of this name by one command after another, each going on from the one before; each must end with 0
// (REQUIRE). The settings of `all` come before those of a leg.
TrainedRun train_run(const Trial& trial, const std::string& name, const std::vector<Leg>& legs, const Sets& all = {});

// What two runs have in common.
struct Compared {
  std::string part = "weights/";  // data sets of the last checkpoints; "": all, optimiser and residuals too
  double within = 0;              // their largest relative difference; 0: the same bits
  bool evaluation = false;        // last test_loss, to 1e-9 at least, and test_accuracy
  // Records of metrics.jsonl but for their times, to the bit; how many there must be, 0: not compared.
  std::size_t steps = 0;   // step, epoch, learning rate, loss, gradient norm
  std::size_t epochs = 0;  // epoch, learning rate, losses, accuracy
};
void check_equal(const TrainedRun& run, const TrainedRun& expected, const Compared& compared = {});

}  // namespace echelon::test
