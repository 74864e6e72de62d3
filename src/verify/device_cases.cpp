// SPDX-License-Identifier: Apache-2.0
#include "verify/device_cases.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "verify/device_contract.hpp"
#include "verify/random.hpp"

namespace echelon::verify {

#define F(family, family_dims, kinds) OpCases family##_cases();
ECHELON_OP_FAMILIES(F)
#undef F

OpCases cases_of(OpKind kind) {
  switch (kind) {
#define X(name) case OpKind::name:
#define F(family, family_dims, kinds) kinds return family##_cases();
    ECHELON_OP_FAMILIES(F)
#undef F
#undef X
  }
  return {};
}

std::vector<OpSpec> contract_specs(DType dtype) {
  std::vector<OpSpec> specs;
  const auto append = [&](const std::vector<OpSpec>& more) { specs.insert(specs.end(), more.begin(), more.end()); };
#define F(family, family_dims, kinds) append(family##_cases().specs(dtype));
  ECHELON_OP_FAMILIES(F)
#undef F
  return specs;
}

std::vector<std::string> kinds_without_spec(const std::vector<OpSpec>& specs) {
  std::vector<std::string> missing;
  for (OpKind kind : all_op_kinds())
    if (std::none_of(specs.begin(), specs.end(), [&](const OpSpec& spec) { return spec.kind == kind; }))
      missing.emplace_back(name_of(kind));
  return missing;
}

std::string InputDraw::name() const { return fmt::format("{}/{}/{}", spec.text(), trial.name, arg.name); }

std::vector<double> InputDraw::any() const {
  if (arg.dtype == DType::i32) return integers(-2'000'000'000, 2'000'000'000);
  return random_values(elems(arg.shape), name());
}

std::vector<double> InputDraw::affine(double factor, double shift) const {
  std::vector<double> values = random_values(elems(arg.shape), name());
  for (double& value : values) value = factor * value + shift;
  return values;
}

std::vector<double> InputDraw::integers(std::int64_t low, std::int64_t high) const {
  const std::vector<std::int64_t> values = random_integers(elems(arg.shape), low, high, name());
  return {values.begin(), values.end()};
}

std::vector<double> InputDraw::zeros_and_ones() const {
  std::vector<double> values = any();
  for (double& value : values) value = value < 0.5 ? 1 : 0;
  return values;
}

std::vector<double> make_input(const OpSpec& spec, const ArgInfo& arg, const OpTrial& trial, const Values& before) {
  const InputDraw draw{spec, arg, trial, before};
  const auto input = cases_of(spec.kind).input;
  return input ? input(draw) : draw.any();
}

}  // namespace echelon::verify
