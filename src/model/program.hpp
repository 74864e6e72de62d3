// SPDX-License-Identifier: Apache-2.0
// A program: a graph lowered for one rank, one batch size and one device, with ops, layouts and memory for every
// tensor.
//
// Several programs (training, evaluation, another batch size) share the arenas. All functions are called by the rank's
// compute thread. `forward` and `backward` enqueue work on the device and allocate nothing; they return before it is
// done, unless a callback waits. Pipelines run several forwards before the backwards: each micro-batch in flight has
// its own activations, and the ops are the same.
//
// The graph of a part of a model (src/parallel) may have no loss: its backward pass begins with gradients that other
// ranks send.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/state.hpp"
#include "device/arenas.hpp"
#include "device/device.hpp"
#include "device/paced/step_pace.hpp"
#include "device/tensor.hpp"
#include "model/graph.hpp"

namespace echelon::inline model {

struct ProgramOptions {
  std::int64_t batch = 1;           // N
  bool training = true;             // false: forward only, batch norm by its running statistics
  std::optional<DType> dtype = {};  // for activations; none: that of the arenas. Halves and f32 arenas: mixed precision
  bool keep_values = false;         // every value stays readable after a forward pass, so that tensors share no memory
  std::vector<std::string> read = {};  // these values stay readable, and have plain copies; no layers are fused
  int state_slots = 1;                 // micro-batches of a step, each with its own recurrent states
  int in_flight = 1;                   // micro-batches whose activations are held at once
  bool replay = false;                 // ops between two callbacks are replayed (replay.hpp) if the device can record
};

// The scalars of the pass of one micro-batch.
struct PassScalars {
  double loss_scale = 1.0;    // 1 / W, W the sum of label weights of the step over all replicas and micro-batches
  double samples = 0;         // samples of the step over all replicas and micro-batches, for synchronised batch norm;
                              // 0: those of this micro-batch
  double group_weight = 1.0;  // weight of this micro-batch / W: its share in running statistics
  std::uint64_t key = 0;      // hash of (seed, step), the same on every replica: the seed of dropout
  bool first = true;          // parameter gradients are overwritten; false: added to
  int slot = 0;               // recurrent states: the number of the micro-batch in the step, below state_slots
  int in_flight = 0;          // activations: below ProgramOptions::in_flight
};

// A transfer between two ops of a split model: `from` is sent, `to` is filled; the data is null if one is absent.
struct Transfer {
  int cut = -1;
  bool backward = false;
  Tensor from, to;
};

// Sums over labels i with weights w: the mean loss is loss / weight, the accuracy correct / weight.
struct LossSums {
  double loss = 0;     // sum of w_i * loss_i
  double correct = 0;  // sum of w_i over correct predictions
  double weight = 0;   // sum of w_i
};

// One device op, for `bench step`.
struct OpReport {
  std::string node;
  bool backward = false;
  OpSpec spec;
  std::string implementation;
  double seconds = 0;  // filled by profile()
};

struct ProfileOptions {
  bool convs_once = false;  // equal ops of convolutions run once, and all have the time of that run
  double most_seconds = std::numeric_limits<double>::infinity();  // ops that would begin later have an infinite time
};

class Program {
 public:
  // Lowers the graph (model/lowered.hpp) for the arenas' device and allocates its memory. The arenas hold the
  // parameters of this graph and must outlive the program. Throws MemoryError above the device's limit,
  // EnvironmentError if the device cannot make an op.
  Program(const Graph& graph, Arenas& arenas, const ProgramOptions& options);
  ~Program();
  Program(const Program&) = delete;

  std::int64_t batch() const;
  // Device memory of a graph input, (N, ..), plain, in the arenas' dtype or i32; the caller fills it before `forward`
  // (Device::to_device). Throws if the graph has no such input.
  Tensor input(std::string_view name, int in_flight = 0) const;
  // Bytes of all inputs of one micro-batch.
  std::size_t input_bytes() const;
  // "ids" exists only if a layer reads it, "target" and "lengths" only if the data has them.
  bool has_input(std::string_view name) const;
  // Device memory of a value after a forward pass, (N, ..), plain. Always available for logits (the input of the loss);
  // for those of ProgramOptions::read; for other values with `keep_values` if their layout is plain. ConfigError
  // otherwise, and for an unknown name. In mixed precision logits and `read` are f32, others halves.
  Tensor value(std::string_view name) const;

  void forward(const PassScalars& scalars);
  // Must be called after a forward with the same `in_flight`. `ready`, if given, is called with the arena range of each
  // node's gradients once all ops that write it are enqueued, in the order in which back-propagation finishes them.
  void backward(const PassScalars& scalars, const std::function<void(ArenaRange)>& ready = {});
  // Callback before the ops of a node, with the arena range of its parameters: it returns once they hold the values of
  // this step (for exchanges that overlap with the forward pass).
  void set_wait_parameters(std::function<void(ArenaRange)> wait);

  // Callback between two ops with an f64 tensor (2, C), plain, which it replaces by the sum over all replicas
  // (synchronised batch norm). Without it the sums of this replica are used.
  void set_sum_over_replicas(std::function<void(const Tensor&)> sum);

  // Callback for the transfers of a split model, in the order of ops. It returns once `from` may be overwritten and
  // `to` is filled for the next op of the device. Must be set if the graph has cuts.
  void set_transfer(std::function<void(const Transfer&)> transfer);

  // Makes each op take its share of the pace of a step in which this program runs forward and backward `passes` times
  // (device/paced/step_pace.hpp); transfers and sums over replicas take additional time. The device's ops must run on
  // the host, without recordings. `pace` must outlive the program.
  void set_pace(StepPace& pace, double passes);

  // Sums over all forward passes since the last reset; waits for the device. Zeros for a graph without a loss.
  LossSums losses();
  void reset_losses();
  // The same without waiting for the whole device: the sums of all forward passes that are enqueued so far are copied
  // to the host in stream order, and can be read once an event recorded afterwards has passed.
  void send_losses();
  LossSums sent_losses() const;

  // Recurrent states that layers with `carry` keep between forward passes, zero at first.
  bool has_states() const;
  void reset_states();
  // Those of one row of a micro-batch's slot.
  void reset_states(int slot, std::int64_t row);
  // Saves or loads each state as one tensor (slots, N, H), per_replica; another number of replicas resets it.
  void visit_state(StateVisitor& visitor);

  // Bytes of device memory that this program holds in addition to the arenas.
  std::size_t activation_bytes() const;
  std::size_t scratch_bytes() const;

  // All device ops in order, transfers left out.
  std::vector<OpReport> ops() const;
  // Runs one forward and one backward with a synchronisation around each op, without transfers; `seconds` are wall
  // times of one run. If the device can record, an op runs 8 times from one recording, so that the host's launch time
  // hardly counts; gradients that are added to then have wrong values. The inputs may hold any data.
  std::vector<OpReport> profile(const ProfileOptions& options = {});

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace echelon::inline model
