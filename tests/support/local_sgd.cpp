// SPDX-License-Identifier: Apache-2.0
#include "tests/support/local_sgd.hpp"

#include <numeric>

namespace echelon::test {

LocalWorkers::LocalWorkers(const ReplicaRun& run) : run_(run) {
  for (const std::int64_t share : run.shares) {
    Worker worker{.trainer = std::make_unique<Trainer>(run.graph, share), .weights = {}, .momentum = {}};
    worker.weights = worker.trainer->read_weights();
    worker.momentum.resize(worker.weights.size());
    workers_.push_back(std::move(worker));
  }
}

double LocalWorkers::share(int worker) const {
  const std::int64_t all = std::accumulate(run_.shares.begin(), run_.shares.end(), std::int64_t{0});
  return static_cast<double>(run_.shares[static_cast<std::size_t>(worker)]) / static_cast<double>(all);
}

void LocalWorkers::step(std::int64_t step, double divisor) {
  const PlainBatch all = step_batch(run_, step);
  std::int64_t first = 0;
  for (std::size_t w = 0; w < workers_.size(); first += run_.shares[w++]) {
    Worker& worker = workers_[w];
    Trainer& trainer = *worker.trainer;
    for (std::size_t i = 0; i < worker.weights.size(); ++i)
      trainer.write_weight(static_cast<std::int64_t>(i), worker.weights[i]);
    const PlainBatch batch = part_of(all, first, run_.shares[w]);
    trainer.set_step(step);
    trainer.gradients(batch, divisor > 0 ? divisor : batch.weight(), true);
    const std::vector<double> gradients = trainer.read_gradients();
    for (const Parameter& p : run_.graph.parameters().all())
      for (auto i = static_cast<std::size_t>(p.begin); i < static_cast<std::size_t>(p.end()); ++i) {
        const double g = gradients[i] + (p.decays ? run_.weight_decay * worker.weights[i] : 0);
        worker.momentum[i] = run_.momentum * worker.momentum[i] + g;
        worker.weights[i] -= run_.learning_rate * worker.momentum[i];
      }
  }
}

std::vector<double> LocalWorkers::mean_weights() {
  std::vector<double> mean(weights(0).size());
  for (int w = 0; w < size(); ++w) mean = plus(mean, share(w), weights(w));
  return mean;
}

std::vector<double> plus(const std::vector<double>& b, double factor, const std::vector<double>& a) {
  std::vector<double> sum = b;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * a[i];
  return sum;
}

}  // namespace echelon::test
