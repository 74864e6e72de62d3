// SPDX-License-Identifier: Apache-2.0
#include "run/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/log.hpp"
#include "checkpoint/checkpoint.hpp"
#include "comm/group.hpp"
#include "exchange/allreduce/autotune.hpp"

namespace echelon::inline run {
namespace {

// Differs between placements of ranks on hosts.
std::int64_t hosts_mark(const Transport& transport) {
  std::string text;
  for (const int host : transport.hosts()) text += transport.host_names()[static_cast<std::size_t>(host)] + "\n";
  return static_cast<std::int64_t>(checksum64(text) >> 1);
}

std::string of_largest_part(Engine& model, std::int64_t elems, const std::string& choice) {
  constexpr int kChannel = 0;
  Group group(model, kChannel);
  const std::vector<double> sizes = group.gather(static_cast<double>(elems));
  const auto largest = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
  return group.gather(choice)[static_cast<std::size_t>(largest)];
}

}  // namespace

ExchangeConfig Tuning::settle(const ExchangeConfig& config, const Decision& start, Engine& engine, Engine* model,
                              const Transport& world, int first_channel, const ParameterSet& parameters, DType dtype) {
  if (config.algorithm != "auto") return config;
  chose_ = true;
  logs_ = world.rank() == 0;
  const std::int64_t replicas = engine.size(), hosts = hosts_mark(world);
  if (!start.first_step() && !start.other_run) {
    load_checkpoint(start.checkpoint, [this](StateVisitor& visitor) { visit_state(visitor); });
    if (replicas_ == replicas && hosts_ == hosts) {
      report_ = fmt::format("autotune  chosen earlier: {}", choice_.text());
      return with_choice(config, choice_.text());
    }
    report_ = "autotune  repeated, because the replicas or hosts differ from those of the checkpoint\n";
  }
  const Tuned tuned = tune_exchange(config, engine, first_channel, parameters, dtype);
  std::string choice = choice_text(tuned.exchange);
  if (model) choice = of_largest_part(*model, parameters.elems(), choice);
  choice_.set(choice);
  replicas_ = replicas, hosts_ = hosts;
  report_ += tuned.report;
  if (model) report_ += fmt::format("{} parts, of which the largest chose  {}\n", model->size(), choice);
  if (logs_) write_file_whole(start.folder.attempt + "/autotune.txt", tuned.report);
  return with_choice(config, choice);
}

void Tuning::log_choice() const {
  if (!logs_) return;
  std::istringstream lines(report_);
  for (std::string line; std::getline(lines, line);) log_info("{}", line);
}

void Tuning::visit_state(StateVisitor& visitor) {
  if (!chose_) return;
  choice_.visit_state(visitor, "exchange/choice");
  visitor.scalar("exchange_choice_replicas", replicas_);
  visitor.scalar("exchange_choice_hosts", hosts_);
}

}  // namespace echelon::inline run
