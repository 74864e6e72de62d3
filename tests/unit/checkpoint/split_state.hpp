// SPDX-License-Identifier: Apache-2.0
// The state of a model whose parts lie on several ranks, which are threads: tensors are split along any axis, folded,
// on one rank only, on all alike, or have rows of two replicas.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "checkpoint/checkpoint_writer.hpp"
#include "tests/support/process.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"

namespace echelon::test {

struct SplitTensor {
  const char* name;
  Shape whole;
  int axis = -1;  // the axis that is split; -1: none
  int folded = -1;
  int owner = -1;     // the only rank that has it; -1: all
  bool rows = false;  // has a row for each of two replicas
};

inline const std::vector<SplitTensor>& split_tensors() {
  static const std::vector<SplitTensor> all = {
      {.name = "weights/conv.weight", .whole = {6, 4, 3}, .axis = 0},
      {.name = "weights/dense.weight", .whole = {150, 121}, .axis = 1},
      {.name = "weights/lstm.weight", .whole = {4, 10, 7}, .axis = 1, .folded = 0},
      {.name = "weights/deep.weight", .whole = {3, 9, 2, 5}, .axis = 1, .folded = 2},
      {.name = "weights/first.bias", .whole = {7}, .owner = 0},
      {.name = "weights/last.bias", .whole = {11}, .owner = 1},
      {.name = "weights/norm.scale", .whole = {13}},
      {.name = "residual/dense.weight", .whole = {2, 5, 12}, .axis = 2, .rows = true},
      {.name = "residual/lstm.weight", .whole = {2, 4, 10, 7}, .axis = 2, .folded = 1, .rows = true},
      {.name = "residual/norm.scale", .whole = {2, 13}, .rows = true},
  };
  return all;
}

// The state that one of `ranks` has at `step`, on the first replica. If not `filled`, it is to be loaded.
class SplitState {
 public:
  SplitState(int rank, int ranks, std::int64_t step, bool filled) : rank_(rank), ranks_(ranks), step_(step) {
    for (const SplitTensor& tensor : split_tensors()) {
      Held& held = held_.emplace_back(share_of(tensor));
      held.expected = part_of(tensor, held.region, step);
      held.values = filled ? held.expected : std::vector<double>(held.expected.size(), -7);
      if (!tensor.rows) continue;
      TensorRegion both = held.region;
      both.shape = both.shape.with_front(2);
      const std::vector<double> values = part_of(tensor, both, step);
      GatheredTensor& rows = gathered_[tensor.name];
      rows.shape = both.shape;
      rows.bytes.resize(values.size() * sizeof(double));
      std::memcpy(rows.bytes.data(), values.data(), rows.bytes.size());
    }
    if (!filled) step_ = -1;
  }

  VisitAll all() {
    return [this](StateVisitor& visitor) {
      visitor.scalar("step", step_);
      for (std::size_t i = 0; i < held_.size(); ++i) {
        const SplitTensor& tensor = split_tensors()[i];
        Held& held = held_[i];
        if (!has(tensor)) continue;
        StateTensor shown{.name = tensor.name, .data = held.values.data(), .dtype = DType::f64};
        shown.shape = held.region.shape;
        if (tensor.axis >= 0 || tensor.rows) {
          shown.placement = tensor.rows ? Placement::per_replica : Placement::slice;
          shown.global_shape = held.region.whole;
          shown.offset = held.region.offset;
          shown.folded = tensor.folded;
        }
        visitor.tensor(shown);
      }
    };
  }
  const GatheredTensors& gathered() const { return gathered_; }
  void spoil() {
    step_ = -1;
    for (Held& held : held_) std::fill(held.values.begin(), held.values.end(), -9);
  }
  // Fails a check if other values were loaded.
  void require_loaded(std::int64_t step) const {
    ECHELON_CHECK_EQ(step_, step);
    for (std::size_t i = 0; i < held_.size(); ++i)
      ECHELON_CHECK(!has(split_tensors()[i]) || held_[i].values == held_[i].expected, "{} on rank {} of {}",
                    split_tensors()[i].name, rank_, ranks_);
  }

 private:
  struct Held {
    TensorRegion region;
    std::vector<double> values = {}, expected = {};
  };

  bool has(const SplitTensor& tensor) const { return tensor.owner < 0 || tensor.owner % ranks_ == rank_; }

  Held share_of(const SplitTensor& tensor) const {
    std::array<std::int64_t, Shape::kMaxRank> shape{}, offset{};
    for (int axis = 0; axis < tensor.whole.rank(); ++axis) {
      const std::int64_t extent = tensor.whole[axis];
      const auto i = static_cast<std::size_t>(axis);
      const bool divided = axis == tensor.axis;
      offset[i] = divided ? rank_ * extent / ranks_ : 0;
      shape[i] = divided ? (rank_ + 1) * extent / ranks_ - offset[i] : extent;
    }
    if (tensor.rows) shape[0] = 1;
    const auto rank = static_cast<std::size_t>(tensor.whole.rank());
    return {.region = {Shape(std::span<const std::int64_t>(shape).first(rank)), tensor.whole,
                       Shape(std::span<const std::int64_t>(offset).first(rank))}};
  }

  static std::vector<double> part_of(const SplitTensor& tensor, const TensorRegion& region, std::int64_t step) {
    const std::vector<double> whole =
        random_values(static_cast<std::size_t>(tensor.whole.elems()), tensor.name + std::to_string(step));
    std::vector<double> part(static_cast<std::size_t>(region.shape.elems()));
    copy_from_whole(region, sizeof(double), whole.data(), part.data());
    return part;
  }

  int rank_, ranks_;
  std::int64_t step_;
  std::vector<Held> held_;
  GatheredTensors gathered_;
};

inline CheckpointConfig part_config(bool asynchronous, std::int64_t keep = 2) {
  CheckpointConfig config;
  config.asynchronous = asynchronous, config.keep = keep, config.verify = true;
  return config;
}

// Calls body(writer, engine) on this many ranks, each of which has a part.
template <class Body>
void with_writers(const std::string& folder, int ranks, const CheckpointConfig& config, const Body& body) {
  run_ranks(ranks, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    CheckpointWriter writer(folder, config, {.training_data = "{}"}, PartRanks(engine, 3));
    body(writer, engine);
  });
}

inline void save_parts(const std::string& folder, int ranks, const std::vector<std::int64_t>& steps,
                       std::int64_t keep = 5, std::int64_t best = -1) {
  with_writers(folder, ranks, part_config(true, keep), [&](CheckpointWriter& writer, Engine& engine) {
    for (const std::int64_t step : steps) {
      SplitState state(engine.rank(), ranks, step, true);
      writer.save(step, state.all(), state.gathered(), best);
    }
    writer.finish();
  });
}

}  // namespace echelon::test
