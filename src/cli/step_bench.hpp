// SPDX-License-Identifier: Apache-2.0
// Times a training step of one rank on random data in device memory, without input and exchange: `bench step`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/sample_form.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"
#include "device/peak_rate.hpp"
#include "model/graph.hpp"
#include "model/measured_layouts.hpp"
#include "model/program.hpp"
#include "optim/optimiser.hpp"

namespace echelon::cli {

// The form of the samples: that of `data.train` or, if that cannot be opened (a bench needs no data), that of the
// predefined model (model.zoo). Throws DataError if neither is known.
struct BenchSamples {
  SampleForm form;
  std::string origin;  // "data/digits" or "model.zoo"
};
BenchSamples bench_samples(const Config& config);
// Samples of the given shape for the predefined model. Throws ConfigError without one.
BenchSamples bench_samples(const Config& config, const Shape& shape);

struct BenchTimes {
  double median_s = 0;
  double min_s = 0;
  double cpu_s = 0;  // CPU time of all threads, mean per step: the figure least disturbed by other load
  int steps = 0;     // timed steps
};

class StepBench {
 public:
  // `batch`: samples per micro-batch; `shape`: of a sample, instead of that of the data. Throws ConfigError for a model
  // that cannot take the data, EnvironmentError if the device does not exist, and MemoryError.
  StepBench(const Config& config, std::int64_t batch, int threads, const Shape& shape = {});

  // Times `steps` steps of forward, backward and update, after a warm-up of steps / 5, at least 3. `steps` = 0: 50
  // steps, or as many as fit in 20 s, at least 3. Throws NumericError if the loss diverges.
  BenchTimes measure(int steps);
  // Returns the median time of every op over 20 steps, or as many as fit in 20 s, at least 3; sets update_s(). Slower
  // than a normal step, because the device is synchronised after each op.
  std::vector<OpReport> profile();
  double update_s() const { return update_s_; }
  // The rate of a large matrix product on this device with these threads, in FLOP/s: the practical upper bound for
  // ops.
  double peak_flops() { return echelon::peak_flops(*device_, dtype_, arenas_.dtype()); }

  const BenchSamples& samples() const { return samples_; }
  const Device& device() const { return *device_; }
  // How the layouts of convolutions were measured; empty if a rule chose them.
  const std::string& layouts() const { return layouts_.report; }
  const Program& program() const { return program_; }
  const Arenas& arenas() const { return arenas_; }

 private:
  void fill_inputs();
  void step();
  void update();

  BenchSamples samples_;
  Graph graph_;
  MeasuredLayouts layouts_;  // with device.measure_layouts
  std::unique_ptr<Device> device_;
  Arenas arenas_;
  Program program_;
  Optimiser optimiser_;
  DType dtype_;  // type of the activations
  double learning_rate_;
  PassScalars scalars_;
  std::int64_t steps_done_ = 0;
  double update_s_ = 0;
};

}  // namespace echelon::cli
