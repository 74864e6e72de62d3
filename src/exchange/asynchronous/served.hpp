// The weights that a rank serves, and what updates do to them, in the memory of a device: a host's, or the card's that
// the rank computes with (exchange.asynchronous.memory). s is the factor of an update by its staleness (rules.hpp), eta
// its worker's learning rate times its share (exchange.asynchronous.rate).
//
//   changes of weights u    W += s u; with soft > 1 those of a version are added up first
//   gradients g             the optimiser's rule, with states of the server's own, once a version, with the rate
//                           sum of s eta and the gradient (sum of s eta g) / (sum of s eta). Nothing happens where that
//                           rate is 0. With soft = k, shares as rates and lock-step this is synchronous training by any
//                           rule
//
// Running statistics always come as changes. Delay compensation, of weights alone, comes before all this
// (device/delay_compensation.hpp).
//
// Updates come to host memory and answers leave from there. A host computes in the message; on another device an update
// is copied to the room of the sum, where nothing is added up, else to room of its own.
//
// Memory, of G bytes of weights and s servers: the weights G/s; what is added up, or comes, G/s (on a host only with
// soft > 1 or gradients); with gradients, each state G/s; compensation, or a codec: k G/s of what each of k workers
// has; adaptive compensation: G/s more. Beside this, on a device with soft > 1, the largest bucket's part.
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
  bool adds_up = false;                           // soft > 1
  DelayCompensation compensation = {};            //
  bool keeps_copies = false;                      // of the weights that each worker has, for answers that are changes
  std::optional<OptimiserConfig> optimiser = {};  // set: gradients come, and the server applies this
};

// Any thread, one at a time: the engine's, and at meetings the compute thread.
class AsyncServed {
 public:
  // `own`: by bucket, what this rank serves of it. MemoryError where the device has not the memory.
  AsyncServed(std::unique_ptr<Device> device, const ParameterSet& parameters, DType dtype,
              const std::vector<ArenaRange>& own, const AsyncServing& serving);

  // Everybody's first weights, of the whole arena on the host.
  void begin(const void* weights);
  // An update of bucket b: `rate` is eta. `values`, on the host, may be overwritten.
  void apply(int b, int worker, const AsyncUpdate& update, double rate, void* values);
  // What was added up since the last version changes the weights.
  void flush(int b);
  // The weights of b as they are, which go to this worker, to host memory.
  void answer(int b, int worker, void* to);
  // An answer that is coded on the host: the weights of b, and the copy of them that this worker has, which `code`
  // moves along to what the worker will have; null where none is kept.
  using AnswerCoder = std::function<void(const void* weights, void* copy)>;
  void code_answer(int b, int worker, const AnswerCoder& code);

  // Of bucket b what this rank serves, to and from host memory. States: of the optimiser, none where the workers have
  // them; mean squares: where lambda adapts.
  int states() const { return optimiser_ ? optimiser_->states() : 0; }
  void read_weights(int b, void* to) const { read(b, weights(b), to); }
  void read_state(int b, int index, void* to) const { read(b, state(b, index), to); }
  void read_mean_square(int b, void* to) const { read(b, mean_square(b), to); }
  void write_state(int b, int index, const void* from) { write(b, state(b, index), from); }
  void write_mean_square(int b, const void* from) { write(b, mean_square(b), from); }
  // Updates that the optimiser's states have behind them: its bias correction goes on from there.
  void go_on_from(std::int64_t updates) { before_ = updates; }

 private:
  void read(int b, const void* from, void* to) const;
  void write(int b, void* to, const void* from);
  void* weights(int b) const { return served_.weights_at(place(b).begin); }
  void* state(int b, int index) const { return at(optimiser_->state(index), b); }
  void* mean_square(int b) const { return at(mean_square_.data(), b); }
  std::size_t bytes_of(std::int64_t elems) const { return static_cast<std::size_t>(elems) * size_of(served_.dtype()); }
  // Where b lies in the arenas here, which hold what is served alone.
  ArenaRange place(int b) const { return places_[static_cast<std::size_t>(b)]; }
  std::size_t bytes_of_bucket(int b) const { return bytes_of(place(b).elems()); }
  std::byte* at(void* arena, int b) const { return static_cast<std::byte*>(arena) + bytes_of(place(b).begin); }
  std::byte* receive(int b, void* values);
  void compensate_update(int b, int worker, double rate, std::byte* values);
  void add(void* to, const void* from, double factor, std::int64_t elems) const;
  void add_sum(int b);
  void step(int b, double rate);
  void* copy(int b, int worker) const;

  mutable std::mutex mutex_;        // of all that changes
  std::vector<ArenaRange> own_;     // in the arenas of all ranks
  std::vector<ArenaRange> places_;  // the same in the arenas here
  AsyncServing serving_;
  std::unique_ptr<Device> device_;
  Arenas served_;  // weights, and as their gradients what is added up
  KindRuns runs_;
  std::optional<Optimiser> optimiser_;
  Memory mean_square_;
  Memory received_;                               // an update, on a device, where its place in the gradients is taken
  std::map<std::pair<int, int>, Memory> copies_;  // by bucket and worker; where they are kept
  std::vector<std::byte> on_host_;                // weights and a copy, while an answer is coded
  std::vector<double> rates_;                     // by bucket, sum over what is added up
  std::vector<std::int64_t> versions_;            // by bucket
  std::int64_t before_ = 0;
};

}  // namespace echelon::inline exchange
