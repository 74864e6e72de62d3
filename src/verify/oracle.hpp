// SPDX-License-Identifier: Apache-2.0
// The reference device as a function on plain double values.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "device/op_spec.hpp"

namespace echelon::verify {

using Values = std::vector<std::vector<double>>;

struct OracleScalars {
  double scale = 1;
  double count = 0;
  std::uint64_t key = 0;
};

// Returns the outputs of one run, with every tensor plain and in double (labels rounded to integers). `saved` receives
// the memory that a forward twin leaves: it is sized here and may be passed on to the backward op.
Values oracle_outputs(const OpSpec& spec, const Values& inputs, const OracleScalars& scalars = {},
                      std::vector<std::byte>* saved = nullptr);

// Returns d loss / d values by central differences of width 2h.
std::vector<double> numeric_gradient(std::vector<double> values, double h,
                                     const std::function<double(const std::vector<double>&)>& loss);

double dot(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace echelon::verify
