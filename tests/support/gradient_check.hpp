// SPDX-License-Identifier: Apache-2.0
// Checks ops of the reference device against finite differences, in double.
#pragma once

#include <string>
#include <vector>

#include "tests/support/oracle.hpp"
#include "tests/support/random.hpp"

namespace echelon::test {

inline constexpr double kStep = 1e-5, kLimit = 1e-7;

inline std::vector<double> random_for(const ArgInfo& arg, const std::string& salt = {}) {
  return random_values(static_cast<std::size_t>(arg.shape.elems()), std::string(arg.name) + salt);
}

// Returns d dot(y, dy) / d inputs[which], where y is the forward op's first output.
inline std::vector<double> numeric(const OpSpec& forward, Values inputs, std::size_t which,
                                   const std::vector<double>& dy) {
  return numeric_gradient(inputs[which], kStep, [&](const std::vector<double>& values) {
    inputs[which] = values;
    return dot(oracle_outputs(forward, inputs)[0], dy);
  });
}

inline Values random_inputs(const OpSpec& spec) {
  Values inputs;
  for (const ArgInfo& arg : signature(spec))
    if (arg.role == ArgRole::input) inputs.push_back(random_for(arg));
  return inputs;
}

inline std::vector<double> random_gradient(const OpSpec& forward) {
  for (const ArgInfo& arg : signature(forward))
    if (arg.role == ArgRole::output) return random_for(arg, " gradient");
  return {};
}

inline OpSpec f64_spec(OpKind kind, const Dims& dims) { return {kind, DType::f64, dims, {}}; }

}  // namespace echelon::test
