// Workers that take steps of their own, simulated one after another in one process with plain loops in double: the
// oracle of strategies that exchange weights. SGD with momentum and weight decay, as PyTorch defines them.
#pragma once

#include <memory>
#include <vector>

#include "tests/support/replicas.hpp"

namespace echelon::test {

class LocalWorkers {
 public:
  // One worker a replica of the run, all with the weights of its rank 0. Models without running statistics.
  explicit LocalWorkers(const ReplicaRun& run);

  int size() const { return static_cast<int>(workers_.size()); }
  // One step of every worker on its own part of the step's batch. Gradients are divided by its weight, or by `divisor`
  // where that is above 0.
  void step(std::int64_t step, double divisor = 0);

  std::vector<double>& weights(int worker) { return workers_[static_cast<std::size_t>(worker)].weights; }
  std::vector<double>& momentum(int worker) { return workers_[static_cast<std::size_t>(worker)].momentum; }
  // Of the worker's samples in a step: its share of all.
  double share(int worker) const;
  // Weighted with the shares.
  std::vector<double> mean_weights();

 private:
  struct Worker {
    std::unique_ptr<Trainer> trainer;
    std::vector<double> weights, momentum;
  };
  const ReplicaRun& run_;
  std::vector<Worker> workers_;
};

// factor * a + b
std::vector<double> plus(const std::vector<double>& b, double factor, const std::vector<double>& a);

}  // namespace echelon::test
