// SPDX-License-Identifier: Apache-2.0
#include "run/opened.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/version.hpp"
#include "config/parse.hpp"
#include "config/refuse.hpp"
#include "job/agree.hpp"
#include "run/channels.hpp"
#include "run/shared_results.hpp"

namespace echelon::inline run {
namespace {

std::unique_ptr<Device> device_of(AttemptContext& context, const Config& config, const ConvTable& layouts) {
  std::unique_ptr<Device> device;
  std::string warning;
  all_or_none(context.group, [&] {
    const std::string kind = device_on(config.device, context.slot).kind;
    DeviceOptions options = device_options(config.device, context.slot, &warning);
    options.conv_table = layouts;
    device = context.open(kind, options);
    if (!device->supports(config.device.dtype))
      throw ConfigError(fmt::format("device.dtype = \"{}\" is not supported by device '{}'",
                                    name_of(config.device.dtype), device->name()));
    if (config.device.pace_ms != 0 && !device->on_host())
      refuse(config, "device.pace_ms",
             fmt::format("device.pace_ms paces ops that are complete when their call returns, but {} runs "
                         "them asynchronously; write device.kind = \"onednn\"",
                         device->name()));
  });
  if (config.device.kinds.empty()) require_same(context.group, "kind of device", std::string(device->name()));
  if (config.train.reproducible)
    require_same(context.group,
                 "device, which train.reproducible = true needs to be one processor and number of threads",
                 device->describe());
  if (!warning.empty() && device->name() == "cuda") log_warning("{}", warning);
  return device;
}

Provenance provenance_of(AttemptContext& context, const Config& config, const Device& device) {
  Provenance p;
  p.version = kVersion;
  p.git_hash = commit();
  p.config_hash = hex64(config_hash(config));
  p.mpi = context.engine.transport().name();
  p.job_id = job_id();
  p.command_line = command_line();
  p.started = now_utc_text();
  p.process = context.group.of_first(process_id_text());
  p.hosts = context.group.gather(context.slot.host);
  p.devices = context.group.gather(device.describe());
  p.seed = config.seed;
  p.ranks = context.slot.ranks;
  p.lost = context.options.lost;
  return p;
}

void open_folder(AttemptContext& context, const Config& config, const Decision& start, const Provenance& provenance) {
  context.board.open(start.folder, provenance);
  if (!start.first_step() && !start.other_run)
    context.board.set_checkpoint("checkpoints/" + std::filesystem::path(start.checkpoint).filename().string());
  context.board.set_damaged(start.damaged);
  context.phase.at_step(start.step);
  context.board.at_step(start.step);
  all_or_none(context.group, [&] {
    if (!context.is_first()) return;
    log_to_file(start.folder.attempt + "/run.log");
    conclude_died(start.folder);
    write_file_whole(start.folder.attempt + "/config.toml", echo_config(config));
    context.board.start_beating();
  });
  if (const std::string text = unshared_results(start.folder, context.slot, context.group); !text.empty())
    log_warning("{}", text);
  if (FaultInjector* const faults = context.options.faults)
    faults->begin(start.folder, context.slot.host, context.phase, config.run.restart == Restart::never);
}

}  // namespace

Opened open_run(AttemptContext& context, Placed& placed, const Agreed& agreed) {
  const Config& config = agreed.config;
  RankGroups& groups = placed.groups;
  const int threads = threads_of(config.device, context.slot);
  LayoutChoice layouts;
  const ConvTable table = layouts.settle(context, agreed, groups.mesh().splits());
  std::unique_ptr<Device> device = device_of(context, config, table);
  Provenance provenance = provenance_of(context, config, *device);
  open_folder(context, config, agreed.start, provenance);
  Tuning tuning;
  ExchangeConfig exchange = tuning.settle(
      config.exchange, agreed.start, groups.replicas(), groups.mesh().splits() ? &groups.model() : nullptr,
      context.engine.transport(), kStrategyChannel, agreed.plan.part.graph.parameters(), wide_of(config.device.dtype));
  context.engine.limit(static_cast<int>(exchange.messages_in_flight), static_cast<int>(exchange.helpers));
  auto activations = std::make_unique<ActivationExchange>(*device, groups.engines(), groups.mesh(), groups.coord(),
                                                          agreed.plan.part.cuts, config.device.dtype, kCutsChannel,
                                                          agreed.plan.rank_batches.largest());
  return {.threads = threads,
          .device = std::move(device),
          .layouts = std::move(layouts),
          .provenance = std::move(provenance),
          .tuning = std::move(tuning),
          .exchange = std::move(exchange),
          .activations = std::move(activations)};
}

}  // namespace echelon::inline run
