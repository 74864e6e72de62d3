#include "train/summary.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "train/codec_record.hpp"
#include "train/hooks/progress.hpp"

namespace echelon {

using nlohmann::ordered_json;

namespace {

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // KiB to MiB
}

std::string model_name(const ModelConfig& model) { return model.zoo.empty() ? "custom" : model.zoo; }

std::vector<std::int64_t> batch_by_rank(const RunPlan& plan) {
  if (plan.replicas == plan.shards.replicas()) return plan.batch.per_replica;
  return {plan.batch.global};
}

ordered_json json_of(const Spread& s) { return {{"median", s.median}, {"p25", s.p25}, {"p75", s.p75}}; }

ordered_json number_or_null(double value) {
  return value >= 0 && std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

std::vector<double> split_of(const StepTimes& t) {
  return {t.data_wait_s, t.forward_s,   t.backward_s, t.split_s,
          t.exchange_s,  t.optimiser_s, t.hooks_s,    std::max(0.0, t.other_s())};
}
constexpr std::array<const char*, 8> kSplitNames = {"data",     "forward",   "backward", "split",
                                                    "exchange", "optimizer", "hooks",    "other"};

// Ranks that took clearly longer than the median rank at something they do alone: "rank 3 on n2 is 1.8x slower in
// backward". Waits are no guide: a slow rank makes the others wait. Under a split ranks of one part are compared.
std::vector<std::string> slow_ranks(const SummaryParts& parts, Group& group) {
  constexpr double kSlower = 1.25, kLeastShare = 0.02;  // of the median rank's time; of the step
  const StepTimes& t = parts.statistics.times();
  const std::vector<std::pair<const char*, double>> own = {{"waiting for data", t.data_wait_s},
                                                           {"forward", t.forward_s},
                                                           {"backward", t.backward_s},
                                                           {"update", t.optimiser_s}};
  const double total_s = group.gather(t.total_s)[0];
  std::vector<std::string> told;
  for (const auto& [name, seconds] : own) {
    const std::vector<double> all = group.gather(seconds);
    const Mesh& mesh = parts.place.mesh();
    for (std::size_t r = 0; r < all.size(); ++r) {
      const int part = mesh.index_in_group(mesh.seat(static_cast<int>(r)));
      std::vector<double> of_part;
      for (int replica = 0; replica < mesh.replicas(); ++replica)
        of_part.push_back(all[static_cast<std::size_t>(mesh.rank_of(replica, part))]);
      const double median_s = spread_of(of_part).median;
      if (of_part.size() > 1 && all[r] > kSlower * median_s && all[r] - median_s > kLeastShare * total_s)
        told.push_back(fmt::format("rank {} on {} is {:.1f}x slower in {}", r, parts.provenance.hosts[r],
                                   all[r] / median_s, name));
    }
  }
  return told;
}

ordered_json mesh_json(const Mesh& mesh) {
  return {{"data", mesh.replicas()}, {"pipeline", mesh.pipeline()}, {"tensor", mesh.tensor()}, {"space", mesh.space()}};
}

// Of all parts of the first replica, in the order of parts.
std::string checksum_of_replica(const SummaryParts& parts, Group& group) {
  const Mesh& mesh = parts.place.mesh();
  const std::string own = hex64(parts.arenas.checksum());
  if (mesh.parts() == 1) return own;
  const std::vector<std::string> all = group.gather(own);
  std::string together;
  for (int part = 0; part < mesh.parts(); ++part) together += all[static_cast<std::size_t>(mesh.holders(part).front())];
  return hex64(checksum64(together.data(), together.size()));
}

}  // namespace

Summary collect_summary(const SummaryParts& parts, Group& world, Group& peers, const std::string& state,
                        std::int64_t step) {
  const StatisticsHook& stats = parts.statistics;
  const StepTimes& t = stats.times();
  const WireCounters wire = parts.strategy.wire();
  std::array<double, 3> sent = {static_cast<double>(wire.bytes_sent), static_cast<double>(wire.messages_sent),
                                static_cast<double>(wire.library_bytes)};
  world.sum(sent);
  std::array<double, 14> sums = {t.total_s,
                                 t.data_wait_s,
                                 t.forward_s,
                                 t.backward_s,
                                 t.exchange_s,
                                 t.optimiser_s,
                                 t.hooks_s,
                                 static_cast<double>(parts.runner.bytes_read()),
                                 static_cast<double>(parts.runner.bytes_used()),
                                 stats.exposed_s(),
                                 stats.busy_s(),
                                 t.split_s,
                                 static_cast<double>(parts.courier.sent().bytes_sent),
                                 static_cast<double>(parts.courier.halo_bytes())};
  peers.sum(sums);
  const double ranks = peers.size();
  const double steps = static_cast<double>(std::max<std::int64_t>(1, stats.steps()));
  Summary s;
  s.state = state;
  s.device = std::string(parts.device.name());
  s.device_text = parts.device.describe();
  s.model = model_name(parts.config.model);
  s.parameters = parts.plan.graph.parameters().weight_elems();
  s.step = step;
  s.servers = static_cast<int>(parts.config.exchange.server_ranks);
  s.ranks = world.size() - s.servers;
  s.hosts = parts.seat.hosts;
  s.threads = parts.threads;
  s.paced = !parts.device.computes();
  s.samples_per_s = stats.samples_per_s();
  s.tokens_per_s = stats.tokens_per_s();
  s.step_s = stats.step_s();
  s.measured_steps = stats.measured_steps();
  s.times = {.total_s = sums[0] / ranks,
             .data_wait_s = sums[1] / ranks,
             .forward_s = sums[2] / ranks,
             .backward_s = sums[3] / ranks,
             .split_s = sums[11] / ranks,
             .exchange_s = sums[4] / ranks,
             .optimiser_s = sums[5] / ranks,
             .hooks_s = sums[6] / ranks};
  s.wire_bytes_per_step = sent[0] / steps;
  s.messages_per_step = sent[1] / steps;
  s.library_bytes_per_step = sent[2] / steps;
  s.formula_bytes_per_step = parts.strategy.formula_bytes_per_step();
  s.codec = stats.codec();
  s.bytes_read = sums[7];
  s.bytes_used = sums[8];
  s.split_bytes_per_step = sums[12] / steps;
  s.halo_bytes_per_step = sums[13] / steps;
  s.exposed_s = sums[9] / ranks;
  s.hidden_s = std::max(0.0, sums[10] - sums[9]) / ranks;
  s.skew_s = stats.skew_s() / steps;
  s.slow_ranks = slow_ranks(parts, peers);
  s.epoch = stats.newest_epoch();
  s.loss = stats.newest_loss();
  s.peak_rss_mb = world.gather(peak_rss_mb());
  s.device_peak_mb = world.gather(static_cast<double>(parts.device.peak_bytes()) / (1 << 20));
  const bool stages = parts.place.mesh().pipeline() > 1;
  s.spared_mb = world.gather(stages ? static_cast<double>(parts.runner.spared_bytes()) / (1 << 20) : 0.0);
  s.start_to_first_step_s = peers.max(stats.first_step_s());
  s.weights_checksum = checksum_of_replica(parts, peers);
  return s;
}

void write_summary(const Summary& s, const SummaryParts& parts) {
  const Config& config = parts.config;
  ordered_json split;
  const std::vector<double> seconds = split_of(s.times);
  for (std::size_t i = 0; i < seconds.size(); ++i) split[kSplitNames[i]] = seconds[i];
  split["total"] = s.times.total_s;
  ordered_json rates = json_of(s.samples_per_s);
  rates["steps"] = s.measured_steps;
  ordered_json json = {{"format", "echelon-summary"},
                       {"version", 1},
                       {"name", config.name},
                       {"config_hash", parts.provenance.config_hash},
                       {"state", s.state},
                       {"ranks", s.ranks},
                       {"mesh", mesh_json(parts.place.mesh())},
                       {"servers", s.servers},
                       {"hosts", s.hosts},
                       {"device", s.device},
                       {"device_text", s.device_text},
                       {"paced", s.paced},
                       {"dtype", std::string(name_of(config.device.dtype))},
                       {"threads", s.threads},
                       {"model", s.model},
                       {"parameters", s.parameters},
                       {"strategy", config.exchange.strategy},
                       {"algorithm", config.exchange.algorithm},
                       {"codec", config.exchange.codec},
                       {"global_batch", parts.plan.batch.global},
                       {"batch_per_replica", batch_by_rank(parts.plan)},
                       {"accumulation", parts.plan.batch.accumulation},
                       {"scaling", config.batch.scale_with_replicas ? "weak" : "strong"},
                       {"epochs", s.epoch.epoch},
                       {"steps", s.step},
                       {"samples_per_s", rates},
                       {"step_s", json_of(s.step_s)},
                       {"time_split_s", split},
                       {"wire_bytes_per_step", s.wire_bytes_per_step},
                       {"formula_bytes_per_step", number_or_null(s.formula_bytes_per_step)},
                       {"messages_per_step", s.messages_per_step},
                       {"library_bytes_per_step", s.library_bytes_per_step},
                       {"split_bytes_per_step", s.split_bytes_per_step},
                       {"halo_bytes_per_step", s.halo_bytes_per_step},
                       {"exchange_exposed_s", s.exposed_s},
                       {"exchange_hidden_s", s.hidden_s},
                       {"arrival_skew_s", s.skew_s},
                       {"slow_ranks", s.slow_ranks},
                       {"bytes_read", s.bytes_read},
                       {"bytes_used", s.bytes_used},
                       {"train_loss", number_or_null(s.epoch.epoch > 0 ? s.epoch.train_loss : s.loss)},
                       {"test_loss", number_or_null(s.epoch.test_loss)},
                       {"test_accuracy", number_or_null(s.epoch.test_accuracy)},
                       {"peak_rss_mb", s.peak_rss_mb},
                       {"device_peak_mb", s.device_peak_mb},
                       {"activations_spared_mb", s.spared_mb},
                       {"start_to_first_step_s", s.start_to_first_step_s},
                       {"weights_checksum", s.weights_checksum},
                       {"provenance", to_json(parts.provenance)}};
  if (parts.plan.per_token()) {
    json["tokens_per_s"] = json_of(s.tokens_per_s);
    json["loss_unit"] = "nats per token";
    json["test_perplexity"] = number_or_null(s.epoch.test_loss >= 0 ? std::exp(s.epoch.test_loss) : -1);
  }
  if (s.codec.bytes_before > 0) json["coded"] = json_of(s.codec);
  write_file_whole(parts.folder.attempt + "/summary.json",
                   json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

std::vector<double> percent_parts(const std::vector<double>& parts) {
  const double whole = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<double> out(parts.size(), 0.0);
  if (!(whole > 0)) return out;
  std::vector<int> tenths;
  std::vector<std::size_t> order;
  int left = 1000;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    tenths.push_back(static_cast<int>(parts[i] / whole * 1000));
    left -= tenths.back();
    order.push_back(i);
  }
  const auto remainder = [&](std::size_t i) { return parts[i] / whole * 1000 - tenths[i]; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return remainder(a) > remainder(b); });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool gets_one = left > 0;
    if (gets_one) --left;
    out[order[i]] = (tenths[order[i]] + (gets_one ? 1 : 0)) / 10.0;
  }
  return out;
}

std::string summary_text(const Summary& s, const SummaryParts& parts, const std::string& checkpoint) {
  std::string text =
      fmt::format("{} at step {} of {}", s.state, count_text(s.step), count_text(parts.plan.total_steps));
  if (s.epoch.test_accuracy >= 0) text += fmt::format(": test accuracy {:.2f} %", 100 * s.epoch.test_accuracy);
  if (s.epoch.tested())
    text += fmt::format("{} test loss {:.4f}{}", s.epoch.test_accuracy >= 0 ? "," : ":", s.epoch.test_loss,
                        parts.plan.per_token() ? perplexity_text(s.epoch.test_loss) : "");
  const Spread& rate = parts.plan.per_token() ? s.tokens_per_s : s.samples_per_s;
  text += fmt::format("\n{} {}/s (median of {}, {} to {}){}\ntime:", count_text(static_cast<std::int64_t>(rate.median)),
                      parts.plan.per_token() ? "tokens" : "samples", counted(s.measured_steps, "step"),
                      count_text(static_cast<std::int64_t>(rate.p25)), count_text(static_cast<std::int64_t>(rate.p75)),
                      s.paced ? ", PACED: ops take tabled times, values mean nothing" : "");
  const std::vector<double> percent = percent_parts(split_of(s.times));
  for (std::size_t i = 0; i < percent.size(); ++i)
    if (parts.place.mesh().splits() || std::string_view(kSplitNames[i]) != "split")
      text += fmt::format("{} {} {:.1f} %", i == 0 ? "" : ",", kSplitNames[i], percent[i]);
  text += fmt::format("; first step {:.2f} s after the start\n", s.start_to_first_step_s);
  const bool library = s.library_bytes_per_step > 0;
  const std::string wire =
      library ? fmt::format("by the MPI library, by formula {} a step", bytes_text(s.formula_bytes_per_step))
              : bytes_text(s.wire_bytes_per_step) + " a step on the wire";
  text += fmt::format("memory: up to {:.0f} MiB a rank, {:.1f} MiB of the device; exchange: {}\n",
                      *std::max_element(s.peak_rss_mb.begin(), s.peak_rss_mb.end()),
                      *std::max_element(s.device_peak_mb.begin(), s.device_peak_mb.end()), wire);
  if (s.exposed_s + s.hidden_s > 0)
    text += fmt::format("exchange: {:.0f} % hidden; ranks come to it {} apart\n",
                        100 * s.hidden_s / (s.exposed_s + s.hidden_s), seconds_text(s.skew_s));
  if (parts.place.mesh().tensor() > 1)
    text += fmt::format("shards: {} a step inside replicas\n", bytes_text(s.split_bytes_per_step));
  if (parts.place.mesh().space() > 1)
    text += fmt::format("bands: {} of halos a step, {} inside replicas\n", bytes_text(s.halo_bytes_per_step),
                        bytes_text(s.split_bytes_per_step));
  const auto chunks = static_cast<int>(parts.config.parallel.time_chunks);
  if (const int stages = parts.place.mesh().pipeline(); stages > 1)
    text += fmt::format(
        "pipeline: {} a step between stages, which wait in {:.1f} % of their passes; (p-1)/(m{}+p-1) is {:.1f} %\n",
        bytes_text(s.split_bytes_per_step),
        100 * s.times.split_s / (s.times.split_s + s.times.forward_s + s.times.backward_s), chunks > 1 ? " c" : "",
        100 * bubble_share(stages, static_cast<int>(parts.plan.batch.accumulation), chunks));
  if (const double most = *std::max_element(s.spared_mb.begin(), s.spared_mb.end()); most > 0)
    text += fmt::format("1f1b holds up to {:.1f} MiB of activations a rank less than gpipe would\n", most);
  for (const std::string& rank : s.slow_ranks) text += rank + "\n";
  if (s.codec.bytes_before > 0) text += codec_text(parts.config.exchange.codec, s.codec) + "\n";
  if (s.servers > 0) text += fmt::format("ranks: {} + {}\n", counted(s.ranks, "worker"), counted(s.servers, "server"));
  text += fmt::format("results: {}\nsummary: {}/summary.json\n", parts.folder.run, parts.folder.attempt);
  text += fmt::format("weights: {} (checksum {})", checkpoint.empty() ? "none" : parts.folder.run + "/" + checkpoint,
                      s.weights_checksum);
  return text;
}

}  // namespace echelon
