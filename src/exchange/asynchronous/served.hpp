// SPDX-License-Identifier: Apache-2.0
// The weights that a rank serves, and how updates change them, in the memory of a device: the host, or the card that
// the rank computes with (exchange.asynchronous.memory). s is the factor of an update by its staleness (rules.hpp), eta
// is its worker's learning rate times its share (exchange.asynchronous.rate).
//
//   changes of weights u    W += s u; with soft > 1 the changes of a version are added up first
//   gradients g             the server applies the optimiser's rule, with its own states, once per version, with the
//                           rate sum of s eta and the gradient (sum of s eta g) / (sum of s eta), or not at all if that
//                           rate is 0. With soft = k, shares as rates and lock-step this is synchronous training by any
//                           rule
//
// Running statistics are always pushed as changes. Delay compensation, which applies to weights only, comes first
// (device/delay_compensation.hpp).
//
// Updates arrive in host memory, and answers are sent from there. A host device computes in the message. For another
// device an update is copied to the memory of the sum if nothing is added up, else to separate memory.
//
// Memory, with G bytes of weights, k workers and s servers: weights G/s; sum of updates G/s (on the host only with soft
// > 1 or gradients); with gradients, each optimiser state G/s; with compensation or a codec, copies of all workers'
// weights k G/s; with adaptive compensation another G/s. A device with soft > 1 also holds one update of the largest
// part.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "device/arenas.hpp"
#include "exchange/asynchronous/piece.hpp"
#include "exchange/kind_runs.hpp"
#include "optim/optimiser.hpp"

namespace echelon::inline exchange {

struct AsyncServing {
  int workers = 1;
  bool adds_up = false;  // soft > 1
  DelayCompensation compensation = {};
  bool keeps_copies = false;                      // keeps each worker's weights, for answers that are differences
  std::optional<OptimiserConfig> optimiser = {};  // set: workers push gradients, and the server applies this rule
};

// Calls may come from any thread (the engine's, and at meetings the compute thread); a mutex serialises them.
class AsyncServed {
 public:
  // `own` holds for each bucket the range that this rank serves. Throws MemoryError if the device lacks the memory.
  AsyncServed(std::unique_ptr<Device> device, const ParameterSet& parameters, DType dtype,
              const std::vector<ArenaRange>& own, const AsyncServing& serving);

  // Sets the first weights of all ranks from a whole arena on the host.
  void begin(const void* weights);
  // Applies an update of bucket b; `rate` is eta. `values`, on the host, may be overwritten.
  void apply(int b, int worker, const AsyncUpdate& update, double rate, void* values);
  // Applies what was added up since the last version.
  void flush(int b);
  // Copies the current weights of b, for an answer to this worker, to host memory.
  void answer(int b, int worker, void* to);
  // Calls `code` with host memory of the weights of b and of the copy that this worker has. `code` encodes the answer
  // and updates the copy to what the worker will have. The copy is null if none is kept.
  using AnswerCoder = std::function<void(const void* weights, void* copy)>;
  void code_answer(int b, int worker, const AnswerCoder& code);

  // Copy the served range of bucket b to or from host memory. There are optimiser states only if the server applies the
  // optimiser, and mean squares only if lambda adapts.
  int states() const { return optimiser_ ? optimiser_->states() : 0; }
  void read_weights(int b, void* to) const { read(b, weights(b), to); }
  void read_state(int b, int index, void* to) const { read(b, state(b, index), to); }
  void read_mean_square(int b, void* to) const { read(b, mean_square(b), to); }
  void write_state(int b, int index, const void* from) { write(b, state(b, index), from); }
  void write_mean_square(int b, const void* from) { write(b, mean_square(b), from); }
  // Sets the number of updates before this attempt, from which the optimiser's bias correction continues.
  void go_on_from(std::int64_t updates) { before_ = updates; }

 private:
  void read(int b, const void* from, void* to) const;
  void write(int b, void* to, const void* from);
  void* weights(int b) const { return served_.weights_at(range_at(b).begin); }
  void* state(int b, int index) const { return at(optimiser_->state(index), b); }
  void* mean_square(int b) const { return at(mean_square_.data(), b); }
  std::size_t bytes_of(std::int64_t elems) const { return static_cast<std::size_t>(elems) * size_of(served_.dtype()); }
  // The range of b in served_, which holds only served parts.
  ArenaRange range_at(int b) const { return ranges_[static_cast<std::size_t>(b)]; }
  std::size_t bytes_of_bucket(int b) const { return bytes_of(range_at(b).elems()); }
  std::byte* at(void* arena, int b) const { return static_cast<std::byte*>(arena) + bytes_of(range_at(b).begin); }
  std::byte* receive(int b, void* values);
  void compensate_update(int b, int worker, double rate, std::byte* values);
  void add(void* to, const void* from, double factor, std::int64_t elems) const;
  void add_sum(int b);
  void step(int b, double rate);
  void* copy(int b, int worker) const;

  mutable std::mutex mutex_;        // protects weights, states and copies
  std::vector<ArenaRange> own_;     // in the arenas of all ranks
  std::vector<ArenaRange> ranges_;  // the same ranges in served_
  AsyncServing serving_;
  std::unique_ptr<Device> device_;
  Arenas served_;  // weights, and in the gradients the sum of updates
  KindRuns runs_;
  std::optional<Optimiser> optimiser_;
  Memory mean_square_;
  Memory received_;  // an update on the device, if its range of the gradients is used for the sum
  std::map<std::pair<int, int>, Memory> copies_;  // by bucket and worker
  std::vector<std::byte> on_host_;                // weights and a copy, while an answer is encoded
  std::vector<double> rates_;                     // by bucket: sum of the rates that were added up
  std::vector<std::int64_t> versions_;            // by bucket
  std::int64_t before_ = 0;
};

}  // namespace echelon::inline exchange
