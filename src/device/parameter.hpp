// A parameter: (name, global shape, slice), living in the flat arenas of a rank.
//
// A model declares parameters in canonical order (the order of its nodes). Their values follow one another, plain and
// unpadded, in one arena of weights; the arenas of gradients and of each optimiser state have the same offsets. Layers,
// buckets, checkpoints, averaging and codecs work on spans of these arenas.
//
// Under a split a rank holds a slice of the whole tensor: `offset` and `shape` inside `global_shape`. Initial values
// depend on (seed, name, index inside the whole tensor) alone and checkpoints store whole tensors by name: any mesh can
// resume any other.
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
  enum class Kind : std::uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  double scale = 0.0;  // constant: the value; uniform: in [-scale, scale); normal: the standard deviation
};

struct Parameter {
  std::string name;  // "conv1.weight", unique in the model
  Shape global_shape;
  Shape shape;      // of this rank's slice; equal to global_shape where nothing is split
  Shape offset;     // where the slice begins, one entry an axis
  int folded = -1;  // of a slice: in files the axes `folded` and `folded` + 1 are one
  ParameterKind kind = ParameterKind::weight;
  bool decays = true;     // weight decay applies
  bool sparse = false;    // (rows, ..): a step's gradient is zero but in few rows; Arenas keeps marks of them
  double momentum = 0.1;  // statistic: weight of the newest value
  bool alone = false;     // whole here, and on no other rank that shares this stage of the model
  bool frozen = false;    // training leaves it as it is: no gradient, no optimiser states, no exchange
  Init init;
  std::int64_t begin = 0;  // first element in the arenas, or in that of frozen parameters

  std::int64_t elems() const { return shape.elems(); }
  std::int64_t end() const { return begin + elems(); }
  // Whether every rank that shares a stage of the model holds the whole: its bits must agree on all of them.
  bool shared() const { return shape == global_shape && !alone; }
};

// A half-open range of arena elements.
struct ArenaRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t elems() const { return end - begin; }
  friend bool operator==(const ArenaRange&, const ArenaRange&) = default;
};

// The parameters of one rank, in canonical order, offsets assigned as they are added. Frozen ones are held apart, with
// offsets and indices of their own: what updates, exchanges or averages parameters sees those that are trained alone.
class ParameterSet {
 public:
  static constexpr int kFirstFrozen = 1 << 24;  // index of the first frozen parameter
  // Whole (unsplit) parameter; returns its index. A name taken already is a ConfigError.
  int add(std::string name, const Shape& shape, Init init, bool decays = true);
  int add_statistic(std::string name, const Shape& shape, Init init, double momentum);
  // Any parameter with name, shapes and offset set; `begin` is assigned here.
  int add(Parameter parameter);

  // Trained, at indices from 0, or frozen, from kFirstFrozen.
  const Parameter& operator[](int index) const {
    return index < kFirstFrozen ? all_[static_cast<std::size_t>(index)]
                                : frozen_[static_cast<std::size_t>(index - kFirstFrozen)];
  }
  int size() const { return static_cast<int>(all_.size()); }  // of those that are trained
  const std::vector<Parameter>& all() const { return all_; }  // likewise
  const std::vector<Parameter>& frozen() const { return frozen_; }
  std::int64_t elems() const { return all_.empty() ? 0 : all_.back().end(); }
  std::int64_t frozen_elems() const { return frozen_.empty() ? 0 : frozen_.back().end(); }
  std::vector<Parameter> with_frozen() const;  // both, trained ones first
  std::int64_t weight_elems() const;           // without statistics, with frozen ones: the usual parameter count
  int find(std::string_view name) const;       // -1 where there is none; O(size)

 private:
  std::vector<Parameter> all_, frozen_;
};

}  // namespace echelon::inline device
