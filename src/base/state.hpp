// SPDX-License-Identifier: Apache-2.0
// The interface by which objects expose their state for saving, restoring, comparing and counting.
//
// Every stateful object has `void visit_state(StateVisitor&)`, which names each of its tensors and scalars exactly
// once, always in the same order. One visitor writes a checkpoint, another reads it back into the same memory, a
// third computes checksums to compare replicas, a fourth counts bytes. The object does not know which visitor it
// is.
//
// Placement tells which part of a tensor each rank holds:
//   replicated   equal on every rank that has it; the first of them writes it, all read it
//   slice        this part of the model's box of a tensor of `global_shape`, equal on all replicas of the part; a file
//                has the whole tensor under `name`, so that any mesh can read it
//   rows         this replica's rows of a tensor of `global_shape`, stored whole like a slice
//   per_replica  different on every replica (residuals, asynchronous clocks): `global_shape` has a row for each, and
//                `offset` begins with this replica's; the rest is a box, like a slice's. `other_k` says what happens
//                to it when the number of replicas changes:
//                  refuse          resuming with another number is a DataError
//                  sum_and_divide  every new row is the sum of the old rows / the new number, which keeps the total
//                  reset           zeros
//                  keep            not changed, even if a checkpoint has none
//
// Visiting sends no message and is not collective: rows of other ranks must be gathered before (checkpoint/slices.hpp,
// Strategy::gather_state).
//
// The memory that a visitor gets is host memory, valid only during the call. An object whose state is on a device wraps
// the call: it copies to the host before and, if `visitor.loading()`, back afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace echelon::inline base {

enum class Placement : std::uint8_t { replicated, slice, rows, per_replica };
enum class OtherK : std::uint8_t { refuse, sum_and_divide, reset, keep };

struct StateTensor {
  std::string_view name;  // unique in the run: "weights/conv1.weight"
  void* data = nullptr;   // host memory of shape.elems() * size_of(dtype)
  DType dtype = DType::f32;
  Shape shape = {};  // the part that this rank holds
  Placement placement = Placement::replicated;
  Shape global_shape = {};  // if not replicated: shape of the whole tensor
  Shape offset = {};        // if not replicated: start of this rank's part, one entry per axis
  int folded = -1;          // if not replicated: files merge the axes `folded` and `folded` + 1 of `global_shape`
  OtherK other_k = OtherK::refuse;
  bool absent_is_zero = false;  // if a checkpoint lacks it, it becomes zeros, with a warning in the log
};

// Says what a loading visitor does if the checkpoint lacks a scalar.
enum class Absent : std::uint8_t {
  refused,            // DataError
  kept_in_other_run,  // the value is kept if the checkpoint is that of another run, whose strategy or optimiser may
                      // differ
  kept                // the value is kept: files of earlier versions lack it
};

class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  // True when the visitor writes into the memory it is shown.
  virtual bool loading() const = 0;
  // A loading visitor throws ConfigError or DataError if the stored tensor is missing or has another shape or dtype.
  virtual void tensor(const StateTensor& tensor) = 0;
  // Scalars are replicated: equal on every rank.
  virtual void scalar(std::string_view name, std::int64_t& value, Absent absent = Absent::refused) = 0;
  virtual void scalar(std::string_view name, double& value, Absent absent = Absent::refused) = 0;
};

}  // namespace echelon::inline base
