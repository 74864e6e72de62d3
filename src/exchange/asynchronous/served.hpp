// The weights that a rank serves, and what updates do to them, in host memory. s is the factor of an update by its
// staleness (rules.hpp), eta its worker's learning rate times its share (exchange.asynchronous.rate).
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
// Memory, of G bytes of weights and s servers: the weights G/s; what is added up, G/s; with gradients, each state G/s;
// compensation, or a codec: k G/s of what each of k workers has; adaptive compensation: G/s more. Arenas are laid
// out whole, but memory that is not touched takes no room.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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

class AsyncServed {
 public:
  // `own`: by bucket, what this rank serves of it.
  AsyncServed(const ParameterSet& parameters, DType dtype, std::vector<ArenaRange> own, const AsyncServing& serving);

  // Everybody's first weights, of the whole arena on the host.
  void begin(const void* weights);
  // An update of bucket b: `rate` is eta. `values` are overwritten where they are compensated.
  void apply(int b, int worker, const AsyncUpdate& update, double rate, void* values);
  // What was added up since the last version changes the weights.
  void flush(int b);
  // The weights of b, which go to this worker as they are.
  const void* answer(int b, int worker);
  // The copy of b that this worker has; null where none is kept. Who sends it something else moves the copy along.
  void* copy(int b, int worker);
  const void* weights(int b) const { return weights_at(own_[static_cast<std::size_t>(b)].begin); }

  // What follows is for the host, while nothing comes.
  const void* weights_at(std::int64_t elem) const { return served_.weights_at(elem); }
  // Updates that the optimiser's states have behind them: its bias correction goes on from there.
  void go_on_from(std::int64_t updates) { before_ = updates; }
  // Null where the workers have the optimiser's states.
  Optimiser* optimiser() { return optimiser_ ? &*optimiser_ : nullptr; }
  // Of the whole arena, own parts meaningful; null where lambda is constant.
  void* mean_square() const { return mean_square_.data(); }

 private:
  std::size_t bytes_of(std::int64_t elems) const { return static_cast<std::size_t>(elems) * size_of(served_.dtype()); }
  void compensate_update(int b, int worker, double rate, void* values);
  void add(void* to, const void* from, double factor, std::int64_t elems) const;
  void step(int b, double rate);

  std::vector<ArenaRange> own_;
  AsyncServing serving_;
  KindRuns runs_;
  std::unique_ptr<Device> host_;
  Arenas served_;  // weights, and as their gradients what is added up
  std::optional<Optimiser> optimiser_;
  Memory mean_square_;
  std::map<std::pair<int, int>, std::vector<std::byte>> pulled_;  // by bucket and worker; where copies are kept
  std::vector<double> rates_;                                     // by bucket, sum over what is added up
  std::vector<std::int64_t> versions_;                            // by bucket
  std::int64_t before_ = 0;
};

}  // namespace echelon::inline exchange
