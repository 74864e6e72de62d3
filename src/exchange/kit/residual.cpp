// SPDX-License-Identifier: Apache-2.0
#include "exchange/kit/residual.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "device/vector.hpp"

namespace echelon::inline exchange {

void Residual::clear(ArenaRange range) {
  if (empty() || range.elems() == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(range.elems()) * size_of(dtype_);
  on_device() ? device_->zero(at(range.begin), bytes)
              : static_cast<void>(std::fill_n(at(range.begin), bytes, std::byte{}));
}

double Residual::squares(ArenaRange range) {
  if (values_.empty()) return 0;
  return host_vector_ops().sum_squares(dtype_, at(range.begin), static_cast<std::size_t>(range.elems()));
}

void Residual::release(Device& device, void* values, ArenaRange range) {
  if (values_.empty() || range.elems() == 0) return;
  const auto elems = static_cast<std::size_t>(range.elems());
  std::vector<std::byte> sum(elems * size_of(dtype_));
  device.to_host(sum.data(), values, sum.size());
  host_vector_ops().add(dtype_, sum.data(), at(range.begin), elems);
  device.to_device(values, sum.data(), sum.size());
  host_vector_ops().fill(dtype_, at(range.begin), 0, elems);
}

void Residual::visit(StateVisitor& visitor, std::string_view prefix, const ParameterSet& parameters,
                     ReplicaPosition position) {
  std::vector<Parameter> kept;
  for (const Parameter& parameter : parameters.all())
    if (parameter.kind != ParameterKind::statistic) kept.push_back(parameter);
  const auto describe = [&](std::string_view name, void* data, DType dtype, const Parameter& parameter) {
    return replica_tensor(name, data, dtype, parameter, position);
  };
  if (on_device()) return visit_arena(visitor, prefix, *device_, kept, dtype_, memory_.data(), describe);
  for (const Parameter& p : kept)
    visitor.tensor(describe(fmt::format("{}/{}", prefix, p.name), at(p.begin), dtype_, p));
}

}  // namespace echelon::inline exchange
