// SPDX-License-Identifier: Apache-2.0
#include "run/stage_data.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "h5/file.hpp"
#include "job/agree.hpp"

namespace echelon::inline run {
namespace {

constexpr char kRead = '1', kNotRead = '0';

// Marks the files of the training data that this rank reads.
std::string files_read(const RunPlan& plan, int replica) {
  std::string read(plan.train.shards.size(), kNotRead);
  for (const int source : plan.sources(replica))
    for (const SamplePlan::Run& run : plan.shards.runs(source)) read[static_cast<std::size_t>(run.file)] = kRead;
  return read;
}

// Marks the files that the ranks of this machine read, which share its disk.
std::string files_read_on_host(const RunPlan& plan, int replica, const HostSlot& slot, Group& group) {
  const std::vector<double> machines = group.gather(slot.machine);
  const std::vector<std::string> reads = group.gather(files_read(plan, replica));
  std::string read(plan.train.shards.size(), kNotRead);
  for (std::size_t rank = 0; rank < reads.size(); ++rank)
    for (std::size_t file = 0; file < read.size() && machines[rank] == slot.machine; ++file)
      if (reads[rank][file] == kRead) read[file] = kRead;
  return read;
}

// A copy of such a file would lack the values, or take those of other files for them.
void refuse_linked(const Dataset& set, const std::string& path) {
  const h5::Reader file(path);
  std::vector<std::string> names = file.names();
  if (set.hdf5) {
    names = set.hdf5->samples;
    for (const std::string& more : {set.hdf5->labels, set.hdf5->weights})
      if (!more.empty() && file.has(more)) names.push_back(more);
  }
  for (const std::string& name : names)
    if (const std::string other = file.other_file(name); !other.empty())
      throw DataError(
          fmt::format("{}: values of dataset '{}' lie in another file ({}), which would not be copied: leave "
                      "data.stage out, or copy them into one file (h5repack, echelon data import hdf5)",
                      path, name, other));
}

struct Tally {
  double copied = 0, copied_bytes = 0, reused = 0, no_room = 0;

  void add(StageFolder::Outcome outcome, const Shard& shard) {
    switch (outcome) {
      case StageFolder::Outcome::copied: ++copied, copied_bytes += static_cast<double>(shard.bytes); break;
      case StageFolder::Outcome::reused: ++reused; break;
      case StageFolder::Outcome::no_room: ++no_room; break;
    }
  }
};

void tell(const Tally& own, const HostSlot& slot, const std::string& folder, double seconds, Group& group) {
  std::vector<double> sums = {own.copied, own.copied_bytes, own.reused, own.no_room};
  group.sum(sums);
  if (slot.rank != 0) return;
  log_info("staged    {} ({}) copied, {} used again, on {} in {}, {}",
           counted(static_cast<std::int64_t>(sums[0]), "file"), bytes_text(sums[1]), sums[2],
           counted(slot.hosts, "host"), folder, seconds_text(seconds));
  if (sums[3] > 0)
    log_warning(
        "{} did not fit into {} (because of data.stage_limit_gb, or because a tenth of the disk stays free) and are "
        "read in place",
        counted(static_cast<std::int64_t>(sums[3]), "file"), folder);
}

}  // namespace

std::unique_ptr<StageFolder> stage_data(const DataConfig& config, RunPlan& plan, int replica, const HostSlot& slot,
                                        Group& group) {
  if (config.stage.empty()) return nullptr;
  const double start_s = now_s();
  const bool copies = slot.local_rank == 0;
  const std::string read = files_read_on_host(plan, replica, slot, group);
  const auto limit = static_cast<std::uint64_t>(config.stage_limit_gb * 1e9);
  std::unique_ptr<StageFolder> folder;
  all_or_none(group, [&] { folder = std::make_unique<StageFolder>(config.stage, limit); });
  Tally tally;
  const auto stage = [&](const Dataset& set, Shard& shard, bool is_read) {
    all_or_none(group, [&] {
      if (!copies || !is_read) return;
      refuse_linked(set, shard.path);
      tally.add(folder->add(shard.path), shard);
    });
    if (!is_read) return;
    const std::string copy = folder->path_of(shard.path);
    if (std::filesystem::exists(copy)) shard.copy = copy;
  };
  for (std::size_t i = 0; i < plan.train.shards.size(); ++i) stage(plan.train, plan.train.shards[i], read[i] == kRead);
  if (plan.test)
    for (Shard& shard : plan.test->shards) stage(*plan.test, shard, true);
  tell(tally, slot, config.stage, now_s() - start_s, group);
  return copies ? std::move(folder) : nullptr;
}

}  // namespace echelon::inline run
