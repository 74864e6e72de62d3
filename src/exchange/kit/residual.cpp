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
                     ReplicaPosition place) {
  std::vector<std::byte> fetched(memory_.bytes());
  if (on_device()) device_->to_host(fetched.data(), memory_.data(), fetched.size());
  std::byte* const arena = on_device() ? fetched.data() : values_.data();
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.kind == ParameterKind::statistic) continue;
    const std::string name = fmt::format("{}/{}", prefix, parameter.name);
    std::byte* const values = arena + static_cast<std::size_t>(parameter.begin) * size_of(dtype_);
    visitor.tensor(replica_tensor(name, values, dtype_, parameter, place));
  }
  if (on_device() && visitor.loading()) device_->to_device(memory_.data(), fetched.data(), fetched.size());
}

}  // namespace echelon::inline exchange
