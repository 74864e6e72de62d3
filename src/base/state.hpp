// The interface by which objects expose their state for saving, restoring, comparing and counting.
//
// Every stateful object has `void visit_state(StateVisitor&)` that names each of its tensors and scalars exactly once,
// in the same order each time. One visitor writes a checkpoint, another reads it back into the same memory, a third
// computes checksums for the agreement of replicas, a fourth counts bytes. The object
// does not depend on which visitor it is.
//
// Placement: which part of a tensor each rank holds:
//   replicated   equal on every rank that has it; the first of them writes it, all read it
//   slice        this part of the model's box of a tensor of `global_shape`, equal on all replicas of the part; a file
//                has it whole under `name`, so that any mesh reads it back
//   rows         this replica's rows of a tensor of `global_shape`; likewise
//   per_replica  different on every replica (residuals, asynchronous clocks): `global_shape` has a row for each, and
//                `offset` begins with this replica's; the rest is a box, as a slice's. `other_k` states what becomes of
//                it when the number of replicas changes:
//                  refuse          a resume with another number is a DataError
//                  sum_and_divide  every new row is the sum of the old rows / the new number: the total is kept
//                  reset           zeros
//                  keep            stays as it is, also where a checkpoint has none
//
// Visiting sends no message and is not collective: rows that lie on other ranks are gathered before
// (checkpoint/slices.hpp, Strategy::gather_state).
//
// The memory that a visitor gets is host memory, valid during the call only. An object whose state lives on a device
// wraps the call: copies to the host before, and back after when `visitor.loading()`.
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
  Shape shape = {};  // what this rank holds
  Placement placement = Placement::replicated;
  Shape global_shape = {};  // else than replicated: the whole tensor's shape
  Shape offset = {};        // likewise: where this rank's part begins, one entry an axis
  int folded = -1;          // likewise: in files the axes `folded` and `folded` + 1 of `global_shape` are one
  OtherK other_k = OtherK::refuse;
  bool absent_is_zero = false;  // a checkpoint may not have it: then zeros, with a warning in the log
};

class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  // True when the visitor writes into the memory it is shown.
  virtual bool loading() const = 0;
  // A loading visitor throws ConfigError or DataError where the stored tensor is missing or has another shape or dtype.
  virtual void tensor(const StateTensor& tensor) = 0;
  // Scalars are replicated: equal on every rank.
  virtual void scalar(std::string_view name, std::int64_t& value) = 0;
  virtual void scalar(std::string_view name, double& value) = 0;
};

}  // namespace echelon::inline base
