// SPDX-License-Identifier: Apache-2.0
// An object with state of every type that a checkpoint holds.
#pragma once

#include <string_view>
#include <type_traits>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "tests/support/random.hpp"

namespace echelon::test {

struct Thing {
  std::vector<float> weights;
  std::vector<double> momentum;
  std::vector<std::int32_t> counts;
  std::int64_t step = 0;
  double loss = 0;
  Shape weights_shape = {5, 7};

  explicit Thing(std::string_view name = "") : weights(35), momentum(11), counts(3) {
    if (name.empty()) return;
    const auto random = random_values(46, name);
    for (std::size_t i = 0; i < 35; ++i) weights[i] = static_cast<float>(random[i]);
    for (std::size_t i = 0; i < 11; ++i) momentum[i] = random[35 + i];
    counts = {3, -1, 1 << 30};
    step = 1234567890123;
    loss = random[0] / 3;
  }

  void visit(StateVisitor& visitor) {
    const auto show = [&](const char* name, auto& values, const Shape& shape) {
      StateTensor tensor;
      tensor.name = name;
      tensor.data = values.data();
      tensor.dtype = dtype_of<std::decay_t<decltype(values[0])>>;
      tensor.shape = tensor.global_shape = shape;
      visitor.tensor(tensor);
    };
    show("weights/dense.weight", weights, weights_shape);
    show("optimiser/velocity/dense.weight", momentum, {11});
    show("counts", counts, {3});
    visitor.scalar("step", step);
    visitor.scalar("loss", loss);
  }
  VisitAll all() {
    return [this](StateVisitor& visitor) { visit(visitor); };
  }
  friend bool operator==(const Thing& a, const Thing& b) {
    return a.weights == b.weights && a.momentum == b.momentum && a.counts == b.counts && a.step == b.step &&
           a.loss == b.loss;
  }
};

}  // namespace echelon::test
