// SPDX-License-Identifier: Apache-2.0
#include "verify/oracle.hpp"

#include <cstddef>

#include "base/check.hpp"
#include "verify/stored.hpp"

namespace echelon::verify {

Values oracle_outputs(const OpSpec& spec, const Values& inputs, const OracleScalars& scalars,
                      std::vector<std::byte>* saved) {
  ECHELON_CHECK(spec.dtype == DType::f64, "the oracle computes in double");
  const auto op = oracle().make(spec);
  const auto args = signature(spec);
  std::vector<Bytes> memory;
  std::vector<void*> tensors;
  for (std::size_t a = 0; a < args.size(); ++a) {
    const std::vector<double> zeros(static_cast<std::size_t>(args[a].shape.elems()));
    const bool input = args[a].role == ArgRole::input;
    if (input) ECHELON_CHECK_EQ(inputs.at(a).size(), zeros.size(), "{} of {}", args[a].name, spec.text());
    memory.push_back(to_stored(input ? inputs[a] : zeros, args[a].dtype, args[a].shape, Layout::plain));
    tensors.push_back(memory.back().data());
  }
  std::vector<std::byte> own;
  std::vector<std::byte>& kept = saved ? *saved : own;
  kept.resize(op->saved_bytes());
  OpArgs run;
  run.tensors = tensors.data();
  run.saved = kept.data();
  run.scale = scalars.scale;
  run.count = scalars.count;
  run.key = scalars.key;
  op->run(run);
  Values outputs;
  for (std::size_t a = 0; a < args.size(); ++a)
    if (args[a].role == ArgRole::output)
      outputs.push_back(from_stored(memory[a], args[a].dtype, args[a].shape, Layout::plain));
  return outputs;
}

std::vector<double> numeric_gradient(std::vector<double> values, double h,
                                     const std::function<double(const std::vector<double>&)>& loss) {
  std::vector<double> gradient;
  for (double& value : values) {
    const double middle = value;
    value = middle + h;
    const double above = loss(values);
    value = middle - h;
    const double below = loss(values);
    value = middle;
    gradient.push_back((above - below) / (2 * h));
  }
  return gradient;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  ECHELON_CHECK_EQ(a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace echelon::verify
