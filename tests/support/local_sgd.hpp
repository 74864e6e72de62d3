// SPDX-License-Identifier: Apache-2.0
// Workers that take their own steps, simulated one after another in one process by plain loops in double: the oracle of
// strategies that exchange weights. The rule is SGD with momentum and weight decay, as PyTorch defines it.
#pragma once

#include <memory>
#include <vector>

#include "tests/support/replicas.hpp"

namespace echelon::test {

class LocalWorkers {
 public:
  // Makes one worker per replica of the run, all with the weights of its rank 0. The model has no running statistics.
  explicit LocalWorkers(const ReplicaRun& run);

  int size() const { return static_cast<int>(workers_.size()); }
  // Takes one step of every worker on its own part of the step's batch. Gradients are divided by the weight of that
  // part, or by `divisor` where it is above 0.
  void step(std::int64_t step, double divisor = 0);

  std::vector<double>& weights(int worker) { return workers_[static_cast<std::size_t>(worker)].weights; }
  std::vector<double>& momentum(int worker) { return workers_[static_cast<std::size_t>(worker)].momentum; }
  // Returns the worker's share of a step's samples.
  double share(int worker) const;
  // Returns the mean of the weights, weighted with the shares.
  std::vector<double> mean_weights();

 private:
  struct Worker {
    std::unique_ptr<Trainer> trainer;
    std::vector<double> weights, momentum;
  };
  const ReplicaRun& run_;
  std::vector<Worker> workers_;
};

// Returns factor * a + b.
std::vector<double> plus(const std::vector<double>& b, double factor, const std::vector<double>& a);

}  // namespace echelon::test
