// SPDX-License-Identifier: Apache-2.0
// The flat arenas of a rank: the weights and gradients of the parameters that it trains, elems() values each, and the
// weights of its frozen parameters, all on its device. Element offsets are those of ParameterSet; the elements of a
// parameter are plain and contiguous.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/state.hpp"
#include "device/device.hpp"
#include "device/parameter.hpp"
#include "device/row_bits.hpp"
#include "device/tensor.hpp"

namespace echelon::inline device {

class Arenas {
 public:
  // Allocates both arenas, zero-filled; MemoryError above the device's limit. dtype is f32 or f64. The device must
  // outlive this object.
  Arenas(Device& device, ParameterSet parameters, DType dtype);

  const ParameterSet& parameters() const { return parameters_; }
  Device& device() const { return device_; }
  DType dtype() const { return dtype_; }
  std::int64_t elems() const { return parameters_.elems(); }

  Tensor weight(int parameter) const;
  Tensor gradient(int parameter) const;  // only of a trained parameter
  void* weights_at(std::int64_t elem) const;
  void* gradients_at(std::int64_t elem) const;
  void* frozen_at(std::int64_t elem) const;

  // The rows of a sparse parameter's gradient that may hold anything but zero; all others are zero. A failed check for
  // any other parameter.
  RowMarks row_marks(int parameter) const;
  // `on`: ops and exchanges that write gradients of sparse parameters mark the rows that they write, so that only
  // marked rows need to be cleared and applied. Otherwise (the default, and on devices that compute nothing) programs
  // clear whole tables, and the marks are incomplete.
  void track_rows(bool on);
  bool tracks_rows() const { return tracks_rows_; }
  // Zeroes the gradients of sparse parameters, and their marks.
  void clear_tables();

  // Sets weights to hashes of (seed, parameter name, global index), which are equal on any mesh, and gradients to zero.
  void initialise(std::uint64_t seed);

  // Incremented by touch() after every change of weights; ops that pack weights compare it.
  std::uint64_t version() const { return version_; }
  void touch() { ++version_; }

  // checksum64 of the bytes of all weights, trained and frozen; copies them to the host and waits.
  std::uint64_t checksum() const;
  // Visits "weights/<name>" as slices of whole tensors.
  void visit_state(StateVisitor& visitor);

 private:
  Device& device_;
  ParameterSet parameters_;
  DType dtype_;
  Memory weights_;
  Memory gradients_;
  Memory frozen_;                          // weights of frozen parameters
  Memory marks_;                           // marks of all sparse parameters
  std::vector<std::int64_t> marks_begin_;  // by parameter: its first word in the marks; -1: not sparse
  bool tracks_rows_ = false;
  std::uint64_t version_ = 1;
};

// Returns how a visitor sees the values of a parameter, which are in host memory at `data`.
using DescribeParameter =
    std::function<StateTensor(std::string_view name, void* data, DType dtype, const Parameter& parameter)>;
// Describes values that are equal on all replicas: a slice if the parameter is one.
StateTensor whole_tensor(std::string_view name, void* data, DType dtype, const Parameter& parameter);

// Shows one arena (weights or an optimiser state) of these parameters to a visitor, one by one, as "<prefix>/<name>".
void visit_arena(StateVisitor& visitor, std::string_view prefix, Device& device,
                 const std::vector<Parameter>& parameters, DType dtype, void* arena,
                 const DescribeParameter& describe = whole_tensor);

}  // namespace echelon::inline device
