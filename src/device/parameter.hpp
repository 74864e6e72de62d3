// SPDX-License-Identifier: Apache-2.0
// A parameter: (name, global shape, slice), stored in the flat arenas of a rank.
//
// A model declares parameters in canonical order (the order of its nodes). Their values are contiguous, plain and
// unpadded, in one arena of weights; the arenas of gradients and of each optimiser state have the same offsets. Layers,
// buckets, checkpoints, averaging and codecs work on spans of these arenas.
//
// Under a split a rank holds a slice of the whole tensor: `offset` and `shape` inside `global_shape`. Initial values
// depend only on (seed, name, index inside the whole tensor), and checkpoints store whole tensors by name, so that any
// mesh can resume from any other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.hpp"

namespace echelon::inline device {

enum class ParameterKind : std::uint8_t {
  weight,     // updated by the optimiser's rule from its gradient
  statistic,  // a running average (batch norm): its "gradient" is this step's value, already a weighted mean over the
              // step's groups, so that it is part of the same exchange; updated by `running_average`
};

struct Init {
  enum class Kind : std::uint8_t { constant, uniform, normal, orthogonal };
  Kind kind = Kind::constant;
  // constant: the value; uniform: in [-scale, scale); normal: the standard deviation; orthogonal: the length of the
  // rows or columns, whichever are fewer, of the tensor as a matrix (outputs, others)
  double scale = 0.0;
};

struct Parameter {
  std::string name;  // "conv1.weight", unique in the model
  Shape global_shape;
  Shape shape;      // shape of this rank's slice; equal to global_shape if nothing is split
  Shape offset;     // begin of the slice, one entry per axis
  int folded = -1;  // for a slice: in files the axes `folded` and `folded` + 1 are one axis
  ParameterKind kind = ParameterKind::weight;
  bool decays = true;     // weight decay applies
  bool sparse = false;    // (rows, ..): only few rows of a step's gradient are not zero; Arenas keeps marks of them
  double momentum = 0.1;  // statistic: weight of the newest value
  bool alone = false;     // whole here, and on no other rank that shares this stage of the model
  bool frozen = false;    // not trained: no gradient, no optimiser states, no exchange
  Init init;
  std::int64_t begin = 0;  // first element in the arenas, or in the arena of frozen parameters

  std::int64_t elems() const { return shape.elems(); }
  std::int64_t end() const { return begin + elems(); }
  // Whether every rank that shares a stage of the model holds the whole parameter: its bits must agree on all of them.
  bool shared() const { return shape == global_shape && !alone; }
};

// A half-open range of arena elements.
struct ArenaRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t elems() const { return end - begin; }
  friend bool operator==(const ArenaRange&, const ArenaRange&) = default;
};

// The parameters of one rank in canonical order; offsets are assigned as they are added. Frozen parameters are kept
// separately, with their own offsets and indices: code that updates, exchanges or averages parameters sees only trained
// ones.
class ParameterSet {
 public:
  static constexpr int kFirstFrozen = 1 << 24;  // index of the first frozen parameter
  // Adds a whole (unsplit) parameter; returns its index. ConfigError if the name is already taken.
  int add(std::string name, const Shape& shape, Init init, bool decays = true);
  int add_statistic(std::string name, const Shape& shape, Init init, double momentum);
  // Adds any parameter with name, shapes and offset set; `begin` is assigned here.
  int add(Parameter parameter);

  // A trained parameter, with indices from 0 on, or a frozen one, with indices from kFirstFrozen on.
  const Parameter& operator[](int index) const {
    return index < kFirstFrozen ? all_[static_cast<std::size_t>(index)]
                                : frozen_[static_cast<std::size_t>(index - kFirstFrozen)];
  }
  int size() const { return static_cast<int>(all_.size()); }  // number of trained parameters
  const std::vector<Parameter>& all() const { return all_; }  // trained parameters
  const std::vector<Parameter>& frozen() const { return frozen_; }
  std::int64_t elems() const { return all_.empty() ? 0 : all_.back().end(); }
  std::int64_t frozen_elems() const { return frozen_.empty() ? 0 : frozen_.back().end(); }
  std::vector<Parameter> with_frozen() const;  // all parameters, trained ones first
  std::int64_t weight_elems() const;           // without statistics, with frozen parameters: the usual parameter count
  int find(std::string_view name) const;       // -1 if there is none; O(size)

 private:
  std::vector<Parameter> all_, frozen_;
};

}  // namespace echelon::inline device
