// SPDX-License-Identifier: Apache-2.0
#include "run/layout_choice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.hpp"
#include "base/log.hpp"
#include "checkpoint/checkpoint.hpp"
#include "job/agree.hpp"
#include "model/measured_layouts.hpp"
#include "run/context.hpp"

namespace echelon::inline run {
namespace {

// Whether the devices of all ranks have layouts to choose.
bool all_choose(AttemptContext& context, const DeviceConfig& config) {
  const std::string kind = device_on(config, context.slot).kind;
  const bool here = kind == "onednn" || (kind == "auto" && !means_gpu(kind));
  return context.group.max(here ? 0 : 1) == 0;
}

}  // namespace

ConvTable LayoutChoice::settle(AttemptContext& context, const Agreed& agreed, bool split) {
  const DeviceConfig& device = agreed.config.device;
  if (!device.measure_layouts || split || !all_choose(context, device)) return {};
  chose_ = true;
  logs_ = context.is_first();
  const auto open = [&](const ConvTable& table) {
    DeviceOptions options = device_options(device, context.slot);
    options.conv_table = table;
    return context.open("onednn", options);
  };
  std::string here;
  all_or_none(context.group, [&] { here = open({})->describe(); });
  here = context.group.of_first(here);
  const auto processor = static_cast<std::int64_t>(checksum64(here) >> 1);
  if (!agreed.start.first_step() && !agreed.start.other_run) {
    all_or_none(context.group, [&] {
      load_checkpoint(agreed.start.checkpoint, [this](StateVisitor& visitor) { visit_state(visitor); });
    });
    if (processor_ == processor) {
      report_ = "chosen earlier";
      return ConvTable::parse(choice_.text());
    }
  }
  const std::vector<std::int64_t>& micro = agreed.plan.rank_batches.micro;
  MeasuredLayouts measured;
  all_or_none(context.group, [&] {
    if (!context.is_first()) return;
    measured =
        measure_layouts(agreed.plan.part.graph, device.dtype, *std::max_element(micro.begin(), micro.end()), open);
    if (!choice_.fits(measured.table.text())) measured = {{}, "rule: too many kinds of convolutions"};
  });
  const std::string choice = context.group.of_first(measured.table.text());
  choice_.set(choice);
  processor_ = processor;
  report_ = measured.report;
  return ConvTable::parse(choice);
}

void LayoutChoice::log_choice() const {
  if (logs_) log_info("layouts   {}", report_);
}

void LayoutChoice::visit_state(StateVisitor& visitor) {
  if (!chose_) return;
  choice_.visit_state(visitor, "device/layouts");
  visitor.scalar("device_layouts_processor", processor_);
}

}  // namespace echelon::inline run
