// A training step of one rank on resident random data, measured; `bench step` prints it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/sample_form.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"
#include "model/graph.hpp"
#include "model/program.hpp"
#include "optim/optimiser.hpp"

namespace echelon::cli {

// Form of the samples: that of `data.train`, or, where it cannot be opened (a bench needs no data), the one that the
// zoo's model was made for. Throws DataError where neither says.
struct BenchSamples {
  SampleForm form;
  std::string origin;  // "data/digits" or "model.zoo"
};
BenchSamples bench_samples(const Config& config);

struct BenchTimes {
  double median_s = 0;
  double min_s = 0;
  double cpu_s = 0;  // of all threads a step, on average: what other work on the machine disturbs least
};

class StepBench {
 public:
  StepBench(const Config& config, std::int64_t batch, int threads);

  // Forward, backward and update, warmed up by a fifth of `steps`, at least 3.
  BenchTimes measure(int steps);
  // Every op's median time over `rounds` steps, and the update's.
  std::vector<OpReport> profile(int rounds);
  double update_s() const { return update_s_; }
  // Rate of a large matrix product on this device with these threads, in FLOP/s: what the machine can do at best.
  double peak_flops();

  const BenchSamples& samples() const { return samples_; }
  const Device& device() const { return *device_; }
  const Program& program() const { return program_; }
  const Arenas& arenas() const { return arenas_; }

 private:
  void fill_inputs();
  void step();
  void update();

  BenchSamples samples_;
  std::unique_ptr<Device> device_;
  Graph graph_;
  Arenas arenas_;
  Program program_;
  Optimiser optimiser_;
  DType dtype_;  // of activations
  double learning_rate_;
  PassScalars scalars_;
  std::int64_t steps_done_ = 0;
  double update_s_ = 0;
};

}  // namespace echelon::cli
