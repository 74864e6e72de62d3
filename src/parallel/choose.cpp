// SPDX-License-Identifier: Apache-2.0
#include "parallel/choose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/batch_plan.hpp"
#include "config/check_combinations.hpp"
#include "parallel/footprint.hpp"
#include "parallel/split.hpp"

namespace echelon::inline parallel {
namespace {

constexpr double kNear = 0.98;  // within this fraction of the samples/s of the fastest: equally good
constexpr std::size_t kShown = 8;

class Chooser {
 public:
  Chooser(const Config& config, const Graph& whole, const RankHosts& hosts, const SampleCounts& samples,
          const SplitCosts& costs, CountArenas exchange, int device_index)
      : config_(config), whole_(whole), hosts_(hosts), samples_(samples), costs_(costs), exchange_(exchange) {
    try {
      counting_ = counting_device(config.device, device_index);
    } catch (const EnvironmentError&) {  // no such device is here: footprints are estimated
    }
  }

  SplitChoice run() {
    list();
    for (SplitCandidate& candidate : all_) price(candidate);
    std::stable_sort(all_.begin(), all_.end(), [](const SplitCandidate& a, const SplitCandidate& b) {
      return a.samples_per_s > b.samples_per_s;
    });
    const SplitCandidate* chosen = choose();
    SplitChoice choice{.parallel = chosen->parallel, .candidates = {}, .report = report(*chosen)};
    choice.candidates = std::move(all_);
    return choice;
  }

 private:
  struct Built {
    Config config;
    std::vector<Part> parts;  // by stage
    RankBatches batches;
    std::int64_t micro_batch = 0;
    std::int64_t global_batch = 0;
  };

  // Lists all candidates, smaller model groups first.
  void list() {
    const auto ranks = static_cast<std::int64_t>(hosts_.of_rank.size());
    for (std::int64_t group = 1; group <= ranks; ++group)
      for (std::int64_t pipeline = 1; ranks % group == 0 && pipeline <= group; ++pipeline)
        for (std::int64_t tensor = 1; group % pipeline == 0 && tensor <= group / pipeline; ++tensor) {
          if (group / pipeline % tensor != 0) continue;
          ParallelConfig parallel = config_.parallel;
          parallel.split = "given";
          parallel.pipeline = pipeline;
          parallel.tensor = tensor;
          parallel.space = group / pipeline / tensor;
          leave_out_unused(parallel);
          add(parallel);
        }
  }

  // Adds the candidate unless its groups do not fit the hosts.
  void add(const ParallelConfig& parallel) {
    try {
      all_.push_back(
          {.parallel = parallel, .mesh = Mesh(parallel, hosts_.of_rank, hosts_.names), .refused = {}, .price = {}});
    } catch (const ConfigError&) {
    }
  }

  static MeshCoord coord_of(const Mesh& mesh, int stage) {
    return {.replica = 0, .stage = stage, .shard = 0, .spatial_shard = busiest_spatial_shard(mesh)};
  }

  Built build(const SplitCandidate& candidate) const {
    const Mesh& mesh = candidate.mesh;
    Built built{.config = config_, .parts = {}, .batches = {}};
    built.config.parallel = candidate.parallel;
    check_combinations(built.config);
    const BatchPlan batch = derive_batch(built.config, mesh.replicas(), samples_.train);
    built.batches = busiest_batches(built.config, plan_batch(built.config, mesh.replicas(), samples_.train),
                                    mesh.replicas(), samples_.test, exchange_);
    built.micro_batch = *std::max_element(batch.micro.begin(), batch.micro.end());
    built.global_batch = batch.global;
    for (int stage = 0; stage < mesh.pipeline(); ++stage)
      built.parts.push_back(part_of(whole_, candidate.parallel, coord_of(mesh, stage), costs_.node_s));
    return built;
  }

  void price(SplitCandidate& candidate) const {
    try {
      const Built built = build(candidate);
      candidate.price =
          price_split(built.config, whole_, built.parts, candidate.mesh, hosts_.of_rank, built.micro_batch, costs_);
      candidate.samples_per_s = static_cast<double>(built.global_batch) / candidate.price.step_s();
    } catch (const ConfigError& error) {
      candidate.refused = error.what();
      const std::string place = (config_.file.empty() ? "config" : config_.file) + ":";  // "file:1:1: why"
      if (candidate.refused.starts_with(place))
        if (const std::size_t end = candidate.refused.find(": "); end != std::string::npos)
          candidate.refused.erase(0, end + 2);
    }
  }

  double limit() const {
    const double given = config_.device.memory_limit_mb * 1024 * 1024;
    return given > 0 ? given : costs_.card_bytes;
  }
  bool fits(const SplitCandidate& candidate) const {
    return std::isfinite(candidate.memory) && (limit() == 0 || candidate.memory <= limit());
  }

  // A candidate whose memory cannot even be counted is not an error, because others may need less.
  void weigh(SplitCandidate& candidate) const {
    const Built built = build(candidate);
    for (int stage = 0; stage < candidate.mesh.pipeline(); ++stage) try {
        const Footprint bytes = footprint_of(built.config, built.parts[static_cast<std::size_t>(stage)],
                                             coord_of(candidate.mesh, stage), built.batches, counting_.get());
        candidate.memory = std::max(candidate.memory, bytes.total());
      } catch (const MemoryError&) {
        candidate.memory = std::numeric_limits<double>::infinity();
      }
  }

  const SplitCandidate* choose() {
    SplitCandidate* chosen = nullptr;
    double fastest = 0;
    for (SplitCandidate& candidate : all_) {
      if (!candidate.refused.empty() || candidate.samples_per_s < kNear * fastest) break;
      weigh(candidate);
      if (!fits(candidate)) continue;
      fastest = std::max(fastest, candidate.samples_per_s);
      if (!chosen || candidate.mesh.group_size() < chosen->mesh.group_size()) chosen = &candidate;
    }
    if (!chosen) throw_nothing();
    return chosen;
  }

  [[noreturn]] void throw_nothing() const {
    const SplitCandidate* least = nullptr;
    for (const SplitCandidate& candidate : all_)
      if (candidate.memory >= 0 && (!least || candidate.memory < least->memory)) least = &candidate;
    if (!least)
      throw ConfigError(
          fmt::format("parallel.split = \"auto\" found no possible split for {}; one replica per rank was refused: {}",
                      counted(static_cast<std::int64_t>(hosts_.of_rank.size()), "rank"), all_.front().refused));
    const std::string bound = config_.device.memory_limit_mb > 0
                                  ? fmt::format("device.memory_limit_mb = {}", config_.device.memory_limit_mb)
                              : costs_.card_bytes > 0 ? fmt::format("the {} of memory of a card", bytes_text(limit()))
                                                      : "the memory that can be addressed";
    throw MemoryError(
        fmt::format("parallel.split = \"auto\": no split needs less than {}; the nearest, {}, needs {} on a rank; use "
                    "more ranks per "
                    "host, a smaller batch or a larger batch.accumulation",
                    bound, least->mesh.text(), memory_text(*least)));
  }

  static std::string memory_text(const SplitCandidate& candidate) {
    return std::isfinite(candidate.memory) ? bytes_text(candidate.memory) : "more than can be addressed";
  }

  std::string verdict(const SplitCandidate& candidate, const SplitCandidate& chosen) const {
    if (&candidate == &chosen) return "chosen";
    if (!fits(candidate)) return "too large";
    return candidate.samples_per_s > chosen.samples_per_s ? "hardly faster" : "slower";
  }

  // The table, followed by the refused candidates.
  std::string report(const SplitCandidate& chosen) {
    Table table({"split", "samples/s", "step", "compute", "in replica", "exchange", "memory", ""});
    std::string refused;
    std::size_t shown = 0;
    for (SplitCandidate& candidate : all_) {
      if (++shown > kShown && &candidate != &chosen) continue;
      if (!candidate.refused.empty()) {
        refused += fmt::format("{} is not possible: {}\n", candidate.mesh.text(), candidate.refused);
        continue;
      }
      if (candidate.memory < 0) weigh(candidate);
      const auto time = [](double seconds) { return seconds > 0 ? seconds_text(seconds) : "0"; };
      const SplitPrice& price = candidate.price;
      table.row({candidate.mesh.text(), fmt::format("{:.0f}", candidate.samples_per_s), time(price.step_s()),
                 time(price.compute_s), time(price.between_s), time(price.exchange_s), memory_text(candidate),
                 verdict(candidate, chosen)});
    }
    const std::string among =
        limit() > 0 ? fmt::format("that need at most {} per rank", bytes_text(limit())) : "(no memory limit is set)";
    return fmt::format("split     auto: {} is the fastest of the splits {}; predictions:\n{}{}", chosen.mesh.text(),
                       among, table.text(), refused);
  }

  const Config& config_;
  const Graph& whole_;
  const RankHosts& hosts_;
  const SampleCounts samples_;
  const SplitCosts& costs_;
  CountArenas exchange_;
  std::unique_ptr<Device> counting_;  // null: no such device here
  std::vector<SplitCandidate> all_;
};

}  // namespace

SplitChoice choose_split(const Config& config, const Graph& whole, const RankHosts& hosts, const SampleCounts& samples,
                         const SplitCosts& costs, CountArenas exchange, int device_index) {
  return Chooser(config, whole, hosts, samples, costs, exchange, device_index).run();
}

}  // namespace echelon::inline parallel
