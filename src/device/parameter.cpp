// SPDX-License-Identifier: Apache-2.0
#include "device/parameter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"

namespace echelon::inline device {
namespace {

Parameter whole(std::string name, const Shape& shape, Init init) {
  constexpr std::array<std::int64_t, Shape::kMaxRank> zeros{};
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.global_shape = parameter.shape = shape;
  parameter.offset = Shape(std::span(zeros).first(static_cast<std::size_t>(shape.rank())));
  parameter.init = init;
  return parameter;
}

}  // namespace

int ParameterSet::add(std::string name, const Shape& shape, Init init, bool decays) {
  Parameter parameter = whole(std::move(name), shape, init);
  parameter.decays = decays;
  return add(std::move(parameter));
}

int ParameterSet::add_statistic(std::string name, const Shape& shape, Init init, double momentum) {
  Parameter parameter = whole(std::move(name), shape, init);
  parameter.kind = ParameterKind::statistic;
  parameter.decays = false;
  parameter.momentum = momentum;
  return add(std::move(parameter));
}

int ParameterSet::add(Parameter parameter) {
  if (find(parameter.name) >= 0)
    throw ConfigError(fmt::format("two parameters are called '{}'; give their layers different names", parameter.name));
  ECHELON_CHECK_GT(parameter.elems(), 0, "parameter {} is empty", parameter.name);
  ECHELON_CHECK_EQ(parameter.shape.rank(), parameter.global_shape.rank(), "parameter {} has a slice of another rank",
                   parameter.name);
  ECHELON_CHECK_EQ(parameter.offset.rank(), parameter.global_shape.rank(), "parameter {} has an offset of another rank",
                   parameter.name);
  for (int axis = 0; axis < parameter.shape.rank(); ++axis)
    ECHELON_CHECK_LE(parameter.offset[axis] + parameter.shape[axis], parameter.global_shape[axis],
                     "the slice of parameter {} exceeds the parameter along axis {}", parameter.name, axis);
  parameter.begin = parameter.frozen ? frozen_elems() : elems();
  std::vector<Parameter>& list = parameter.frozen ? frozen_ : all_;
  const int first = parameter.frozen ? kFirstFrozen : 0;
  list.push_back(std::move(parameter));
  return first + static_cast<int>(list.size()) - 1;
}

std::vector<Parameter> ParameterSet::with_frozen() const {
  std::vector<Parameter> both = all_;
  both.insert(both.end(), frozen_.begin(), frozen_.end());
  return both;
}

std::int64_t ParameterSet::weight_elems() const {
  std::int64_t sum = 0;
  for (const Parameter& parameter : with_frozen())
    if (parameter.kind == ParameterKind::weight) sum += parameter.elems();
  return sum;
}

int ParameterSet::find(std::string_view name) const {
  const auto index_in = [&](const std::vector<Parameter>& list, int first) {
    const auto at = std::find_if(list.begin(), list.end(), [&](const Parameter& p) { return p.name == name; });
    return at == list.end() ? -1 : first + static_cast<int>(at - list.begin());
  };
  const int trained = index_in(all_, 0);
  return trained >= 0 ? trained : index_in(frozen_, kFirstFrozen);
}

}  // namespace echelon::inline device
