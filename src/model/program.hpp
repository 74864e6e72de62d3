// A program: a graph made ready for one rank, one batch size and one device. Ops, layouts, and memory for every tensor.
//
// Several programs (training, evaluation, another batch size) share the arenas. `forward` and `backward` allocate
// nothing. Pipelines run several forwards before the backwards: each micro-batch in flight has activations of its own,
// the ops being the same.
//
// The graph of a model's part (src/parallel) may have no loss: its backward pass begins with the gradients that come.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/state.hpp"
#include "device/arenas.hpp"
#include "device/device.hpp"
#include "device/tensor.hpp"
#include "model/graph.hpp"

namespace echelon::inline model {

struct ProgramOptions {
  std::int64_t batch = 1;  // N
  bool training = true;    // false: forward only, batch norm by its running statistics
  std::optional<DType> dtype =
      {};                    // of activations; default: the arenas'. Halves beside arenas of f32: mixed precision
  bool keep_values = false;  // every value stays readable after a forward pass (tests, studies): no memory is shared
  int state_slots = 1;       // micro-batches of a step whose recurrent states are kept apart
  int in_flight = 1;         // micro-batches whose activations are kept apart
  bool replay = false;       // ops run from recordings (model/replay.hpp), as long as they are between two callbacks
};

// Of one micro-batch.
struct PassScalars {
  double loss_scale = 1.0;    // 1 / (weight of the whole step, over all replicas and micro-batches)
  double samples = 0;         // of the whole step likewise, for statistics over replicas; 0: this micro-batch's own
  double group_weight = 1.0;  // this micro-batch's weight * loss_scale: its part in running statistics
  std::uint64_t key = 0;      // hash of (seed, step): what random layers draw from, on every replica alike
  bool first = true;          // parameter gradients are overwritten; else added to
  int slot = 0;               // which recurrent states: the micro-batch's number in the step, below state_slots
  int in_flight = 0;          // which activations, below ProgramOptions::in_flight
};

// What travels between two ops of a split model: `from` is to be sent on, `to` to be filled; null data where there is
// none.
struct Transfer {
  int cut = -1;
  bool backward = false;
  Tensor from, to;
};

struct LossSums {
  double loss = 0;     // sum of per-sample losses, weighted
  double correct = 0;  // weighted number of correct predictions
  double weight = 0;   // sum of the weights
};

// One op as `bench step` and the model's table show it.
struct OpReport {
  std::string node;
  bool backward = false;
  OpSpec spec;
  std::string implementation;
  double seconds = 0;  // filled by profile()
};

class Program {
 public:
  Program(const Graph& graph, Arenas& arenas, const ProgramOptions& options);
  ~Program();
  Program(const Program&) = delete;

  std::int64_t batch() const;
  // Device memory of a graph input, shape with N in front, plain, in the arenas' dtype or i32; the caller fills it
  // (Device::to_device).
  Tensor input(std::string_view name, int in_flight = 0) const;
  // "ids" is there only where a layer wants them.
  bool has_input(std::string_view name) const;
  // Device memory of a value after a forward pass, shape with N in front, plain. Logits (what the loss reads) always;
  // others with `keep_values`, and where they lie plain: an Error otherwise.
  // In mixed precision logits are f32, others halves.
  Tensor value(std::string_view name) const;

  void forward(const PassScalars& scalars);
  // `ready`, where given, is called in the order back-propagation finishes them with each node's range of gradients
  // once all ops that write it are enqueued.
  void backward(const PassScalars& scalars, const std::function<void(ArenaRange)>& ready = {});
  // Called before a node's forward with the range of parameters that it is about to read; for exchanges that overlap.
  void set_wait_parameters(std::function<void(ArenaRange)> wait);

  // Called between two ops with a small f64 tensor, plain, that is to become the sum over all replicas (synchronised
  // batch norm); never where one replica trains alone.
  void set_sum_over_replicas(std::function<void(const Tensor&)> sum);

  // Called in the order of ops with what a split model's cuts send and receive; returns once `from` may be written
  // again and `to` is there for the device's next op.
  void set_transfer(std::function<void(const Transfer&)> transfer);

  // Sums since the last reset, over all forward passes; synchronises.
  LossSums losses();
  void reset_losses();

  // States of recurrent layers with `carry` between forward passes, zero at first.
  bool has_states() const;
  void reset_states();
  // Each as one tensor (slots, N, H), per_replica, reset for another k.
  void visit_state(StateVisitor& visitor);

  // Device memory that this program holds beside the arenas.
  std::size_t activation_bytes() const;
  std::size_t scratch_bytes() const;

  // Without what travels between the ranks of a split model.
  std::vector<OpReport> ops() const;
  // Runs one forward and backward with a synchronisation around each op; nothing travels.
  std::vector<OpReport> profile();

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace echelon::inline model
