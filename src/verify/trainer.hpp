// SPDX-License-Identifier: Apache-2.0
// A model on a device, with batches given as plain numbers. Tests of layers, programs and replicas train it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "model/build.hpp"
#include "model/program.hpp"

namespace echelon::verify {

struct PlainBatch {
  std::vector<double> samples, labels, weights;   // (n, ..); indices are numbers too
  std::vector<double> target = {}, lengths = {};  // only if the data have them
  std::vector<double> ids = {};                   // (n)
  std::int64_t n() const { return static_cast<std::int64_t>(ids.size()); }
  double weight() const;
};

// Returns the form of samples that the graph was built for.
SampleForm form_of(const Graph& graph);
// Returns samples in [-1, 1) or tokens, labels in [-1, 1) or [0, classes), lengths from 1, and weights 1. Sample `id`
// is a hash of (name, id) only.
PlainBatch hashed_batch(const SampleForm& form, std::int64_t first_id, std::int64_t n, std::uint64_t name);
// The part [first, first + n) of a batch.
PlainBatch part_of(const PlainBatch& batch, std::int64_t first, std::int64_t n);

// Fills those inputs that a program has.
void load_batch(Device& device, const Program& program, const PlainBatch& batch, int in_flight = 0);
// The key from which random layers draw in a step.
std::uint64_t step_key(std::int64_t step);
// Copies device memory to the host as numbers.
std::vector<double> fetch(Device& device, const void* data, std::int64_t elems, DType dtype);

struct TrainerOptions {
  std::string device = "reference";
  DType dtype = DType::f64;
  std::uint64_t seed = 1;
  bool training = true;
  bool keep_values = false;
  DType activations = DType::f64;  // a half together with dtype f32: mixed precision; otherwise equal to dtype
  bool replay = false;
};

class Trainer {
 public:
  Trainer(const Graph& graph, std::int64_t batch, const TrainerOptions& options = {});
  // Uses the caller's device; options.device is ignored.
  Trainer(const Graph& graph, std::int64_t batch, const TrainerOptions& options, std::unique_ptr<Device> device);

  Arenas& arenas() { return *arenas_; }
  Program& program() { return *program_; }
  const Graph& graph() const { return graph_; }

  // Sets the step that keys the random draws of the next passes, and its samples over all replicas if they are more.
  void set_step(std::int64_t step, double samples = 0) { step_ = step, samples_ = samples; }
  // Applies to the next backward passes.
  void set_loss_scale(double scale) { loss_scale_ = scale; }

  void load(const PlainBatch& batch) { load_batch(*device_, *program_, batch); }
  // Runs one forward pass and returns the sum over the samples of this batch.
  double loss(const PlainBatch& batch);
  // Computes gradients into the arena, divided by `step_weight`; adds to it unless `first`.
  void gradients(const PlainBatch& batch, double step_weight, bool first,
                 const std::function<void(ArenaRange)>& ready = {});

  std::vector<double> read_gradients() const { return read(arenas_->gradients_at(0)); }
  std::vector<double> read_weights() const { return read(arenas_->weights_at(0)); }
  void write_weight(std::int64_t elem, double value);
  std::vector<double> read(const Tensor& tensor) const;

 private:
  std::vector<double> read(const void* arena) const;
  PassScalars scalars() const;

  std::int64_t step_ = 0;
  double loss_scale_ = 1;
  double samples_ = 0;
  Graph graph_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Arenas> arenas_;
  std::unique_ptr<Program> program_;
};

}  // namespace echelon::verify
