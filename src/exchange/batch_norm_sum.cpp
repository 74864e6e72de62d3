// SPDX-License-Identifier: Apache-2.0
#include "exchange/batch_norm_sum.hpp"

#include "base/check.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/group.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/facets.hpp"

namespace echelon::inline exchange {
namespace {

bool in_memory(const ExchangeConfig& config, const Transport& transport) {
  return sums_in_memory(config) && transport.shares_channels() && transport.host_names().size() == 1;
}

}  // namespace

BatchNormSum::BatchNormSum(Device& device, Engine& engine, int channel, Strategy& strategy,
                           const ExchangeConfig& config, std::int64_t group)
    : device_(device),
      engine_(engine),
      channel_(channel),
      group_(group > 0 && group < engine.size() ? engine.split(static_cast<int>(engine.rank() / group), engine.rank())
                                                : nullptr),
      in_memory_(in_memory(config, engine.transport())),
      on_devices_(facet_of<SumsOnDevices>(strategy)) {}

void BatchNormSum::operator()(const Tensor& tensor) {
  ECHELON_CHECK(tensor.dtype == DType::f64 && tensor.layout == Layout::plain, "sums over replicas are plain and f64");
  if (on_devices_ && !group_ && on_devices_->sum_on_devices(tensor, engine_.size())) return;
  if (group_ && group_->size() == 1) return;
  host_.resize(static_cast<std::size_t>(tensor.elems()));
  device_.to_host(host_.data(), tensor.data, tensor.bytes());
  sum_on_host(group_ ? *group_ : engine_, in_memory_ && !group_);
  device_.to_device(tensor.data, host_.data(), tensor.bytes());
}

void BatchNormSum::add(std::vector<double>& values) {
  host_.swap(values);
  sum_on_host(engine_, in_memory_);
  host_.swap(values);
}

void BatchNormSum::sum_on_host(Engine& engine, bool in_memory) {
  if (engine.size() == 1) return;
  const std::int64_t values = std::ssize(host_);
  engine.run({.plan = in_memory ? make_allreduce("shared", {.rank = engine.rank(),
                                                            .ranks = engine.size(),
                                                            .elems = values,
                                                            .hosts = engine.transport().hosts()})
                                : Group::plan_of_sum(engine.rank(), engine.size(), values),
              .data = host_.data(),
              .dtype = DType::f64,
              .channel = channel_,
              .priority = 0,
              .after = nullptr});
}

}  // namespace echelon::inline exchange
