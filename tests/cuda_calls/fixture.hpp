// SPDX-License-Identifier: Apache-2.0
// The CUDA device over the stand-in, and models on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/arenas.hpp"
#include "device/device.hpp"
#include "model/program.hpp"
#include "model/zoo/zoo.hpp"
#include "optim/optimiser.hpp"
#include "tests/cuda_calls/standin/ledger.hpp"
#include "tests/support/trainer.hpp"

namespace echelon::test {

// The ledger in libechelon_cuda.so beside this executable, which is the stand-in's.
calls::Ledger& ledger();
// Returns a function of that library by name.
void* standin_symbol(const char* name);

// Errors found after everything was returned: broken rules, and memory and objects that are still alive. "" if none.
std::string complaints();

// With two GPUs a thread begins on the first: work on the second finds code that forgets to select the device.
inline constexpr int kGpu = 1;
std::unique_ptr<Device> open_gpu(DeviceOptions options = {.index = kGpu});

// Uses no memory besides weights and gradients.
inline OptimiserConfig plain_sgd() {
  OptimiserConfig config;
  config.momentum = 0;
  return config;
}

// Trains a model for some steps, as a rank does: inputs, forward, backward, update, losses.
class Training {
 public:
  struct Options {
    DType activations = DType::f32;  // halves: mixed precision
    DType dtype = DType::f32;        // dtype of parameters
    std::int64_t batch = 2;
    bool replay = false;  // CUDA graphs
    bool allow_fallback = false;
    OptimiserConfig optimiser = plain_sgd();
  };
  Training(const Graph& graph, const Options& options);
  void step();
  Program& program() { return program_; }
  Device& device() { return *device_; }

 private:
  Graph graph_;
  Options options_;
  std::unique_ptr<Device> device_;
  Arenas arenas_;
  Program program_;
  Optimiser optimiser_;
  PlainBatch batch_;
  std::int64_t steps_ = 0;
};

// A model of the zoo for the smallest samples that use all of its layers.
Graph small_zoo_model(const std::string& name);

// The arguments of one op on the device: random integers if it takes integers, zeros otherwise; if `unaligned`, the
// arena's tensors begin one element late.
class OpRun {
 public:
  OpRun(Device& device, const OpSpec& spec, std::uint64_t version, bool unaligned);
  void run(unsigned accumulate);

 private:
  Device& device_;
  std::unique_ptr<Op> op_;
  std::unique_ptr<Op> twin_;  // twin of a backward op that reads what a forward op saved
  std::vector<Memory> memory_;
  std::vector<void*> tensors_, twin_tensors_;
  Memory saved_, scratch_, twin_scratch_;
  std::uint64_t version_;

  std::vector<void*> arguments(const OpSpec& spec, bool unaligned);
};

}  // namespace echelon::test
