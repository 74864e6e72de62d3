// SPDX-License-Identifier: Apache-2.0
#include "run/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "checkpoint/trained_data.hpp"
#include "config/differences.hpp"
#include "config/keys.hpp"
#include "config/parse.hpp"
#include "config/refuse.hpp"
#include "exchange/asynchronous/ledger_meetings.hpp"
#include "job/agree.hpp"
#include "job/run_folder.hpp"
#include "run/resume.hpp"
#include "train/control/calls.hpp"

namespace echelon::inline run {
namespace {

namespace fs = std::filesystem;
constexpr const char* kKey = "run.replay";
constexpr std::size_t kMostKeys = 6;

// The recorded files of an attempt, in the order of ranks.
std::vector<std::string> files_of(const std::string& attempt) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(attempt, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("arrivals-") && name.ends_with(".bin")) files.push_back(entry->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The attempt that is repeated from this step on.
std::string find_attempt(const Config& config, std::int64_t step) {
  const std::string& folder = config.run.replay;
  std::vector<std::string> attempts = attempts_of(folder);
  if (!files_of(folder).empty()) attempts = {folder};
  std::string begins;
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    const std::vector<std::string> files = files_of(*attempt);
    if (files.empty()) continue;
    const std::int64_t first = read_ledger_header(files.front()).first_step;
    if (first == step) return *attempt;
    begins +=
        fmt::format("{}{} from step {}", begins.empty() ? "" : ", ", fs::path(*attempt).filename().string(), first);
  }
  if (begins.empty())
    refuse(config, kKey,
           fmt::format("{} holds no order of arrivals: write the folder of a run, or of an attempt, of several "
                       "asynchronous workers",
                       folder));
  refuse(config, kKey,
         fmt::format("{} has no attempt that began at step {}, where this run begins; recorded: {}. run.resume_from "
                     "begins at a checkpoint",
                     folder, step, begins));
}

// Returns the config with only those keys that decide about the weights.
Config comparable(Config config) {
  config.run = {};
  config.evaluate = {};
  config.data.train = config.data.test = {};  // compared by what they hold
  config.exchange.verify_every_steps = 0;
  return config;
}

// "exchange.bucket_mb = 4 (recorded: 0.01)", of each key that differs.
std::vector<std::string> other_keys(const Config& here, const Config& there) {
  std::vector<std::string> all;
  for (const KeyDifference& key : differing_keys(here, there, false))
    all.push_back(fmt::format("{} = {} (recorded: {})", key.key, key.left, key.right));
  if (all.empty() && config_hash(here) != config_hash(there)) all.emplace_back("train.epochs or train.steps");
  return all;
}

void refuse_other_run(const Config& config, const RunPlan& plan, const Roles& roles, const std::string& attempt,
                      const LedgerHeader& header) {
  std::vector<std::string> other;
  const auto compare = [&](const char* what, std::int64_t here, std::int64_t there) {
    if (here != there) other.push_back(fmt::format("{} {} (recorded: {})", here, what, there));
  };
  compare("workers", roles.workers, header.workers);
  compare("ranks", roles.ranks(), header.ranks);
  const std::string path = attempt + "/config.toml";
  const std::vector<std::string> keys =
      other_keys(comparable(config), comparable(parse_config(read_file_whole(path), path)));
  other.insert(other.end(), keys.begin(), keys.end());
  compare("steps in all", plan.total_steps, header.total_steps);
  compare("training samples", plan.shards.samples(), header.samples);
  if (plan.shards.samples() == header.samples && trained_data_of(plan.train).fingerprint != header.data)
    other.push_back(fmt::format("different training data in {}", config.data.train));
  if (other.empty()) return;
  if (other.size() > kMostKeys) {
    const std::size_t more = other.size() - kMostKeys;
    other.resize(kMostKeys);
    other.push_back(fmt::format("{} more", more));
  }
  refuse(config, kKey,
         fmt::format("{} was recorded by a different run; this one has {}. A replay needs the same ranks, data and "
                     "keys; {} is the recorded config",
                     attempt, joined(other, "; "), path));
}

// The contents of all files of an attempt.
struct Recording {
  std::vector<LedgerMeeting> meetings;  // that all files hold
  std::vector<std::uint32_t> reasons;   // of each
  std::uint64_t updates = 0;            // of pieces
  std::uint64_t lost_bytes = 0;
};

[[noreturn]] void damaged(const std::string& path, const std::string& why) {
  throw DataError(fmt::format("{}: {}; record the run again", path, why));
}

// Reads all files; keeps the orders of `rank`.
Recording read_recording(const std::string& attempt, const LedgerHeader& first, int rank,
                         std::vector<LedgerBytes>& recorded) {
  const std::vector<std::string> files = files_of(attempt);
  if (static_cast<std::int64_t>(files.size()) != first.servers)
    damaged(attempt, fmt::format("{} served, but {} of arrivals-*.bin {} here", counted(first.servers, "rank"),
                                 counted(std::ssize(files), "file"), files.size() == 1 ? "is" : "are"));
  Recording all;
  std::int64_t pieces = 0;
  std::size_t met = std::numeric_limits<std::size_t>::max();
  for (const std::string& path : files) {
    LedgerFile file = read_ledger_file(path);
    LedgerHeader header = file.header;
    header.rank = first.rank, header.device = first.device;
    if (!(header == first))
      damaged(path, fmt::format("its header belongs to a different attempt from that of {}", files.front()));
    all.lost_bytes += file.lost_bytes;
    if (file.meetings.size() > all.reasons.size()) all.reasons = file.meetings;
    for (const LedgerBytes& order : file.orders) {
      if (order.empty()) continue;
      ++pieces;
      const std::vector<LedgerMeeting> meetings = meetings_of(order, static_cast<int>(first.workers));
      met = std::min(met, meetings.size());
      if (meetings.size() > all.meetings.size()) all.meetings = meetings;
      for (std::size_t m = 0; m < meetings.size(); ++m)
        if (meetings[m].updates != all.meetings[m].updates)
          damaged(path,
                  fmt::format("workers reach meeting {} after numbers of steps that differ from those in other files",
                              m + 1));
    }
    if (file.header.rank == rank) recorded = std::move(file.orders);
  }
  if (pieces < first.pieces) met = 0;  // killed before some server had written anything
  all.meetings.resize(std::min(met, all.meetings.size()));
  if (all.meetings.empty())
    damaged(attempt, "the attempt ended before its first meeting was recorded by all servers, and cannot be repeated");
  all.reasons.resize(all.meetings.size(), kMeetingWish);  // the loss of the last one was not finite
  for (LedgerBytes& order : recorded)
    if (!order.empty()) order.resize(meetings_of(order, static_cast<int>(first.workers))[all.meetings.size() - 1].end);
  for (const std::int64_t updates : all.meetings.back().updates) all.updates += static_cast<std::uint64_t>(updates);
  return all;
}

std::string text_of(const std::string& attempt, const LedgerHeader& header, const Recording& all) {
  const bool whole = (all.reasons.back() & kMeetingEnd) != 0;
  std::string text = fmt::format("the order of {} of {}, {} and {}, from step {}",
                                 counted(static_cast<std::int64_t>(all.updates), "update"),
                                 counted(header.workers, "worker"), counted(header.pieces, "piece"),
                                 counted(static_cast<std::int64_t>(all.meetings.size()), "meeting"), header.first_step);
  text += fmt::format(", recorded in {}", attempt);
  if (!whole) text += "; it does not reach the end of the run: this attempt stops where it ends";
  if (all.lost_bytes > 0)
    text += fmt::format("; {} bytes at the ends of its files are not whole blocks", all.lost_bytes);
  return text;
}

// Finds the folder that config.run.replay asks for; "" if this run is finished already.
std::string attempt_to_repeat(const Config& config, const RunPlan& plan) {
  const Decision start = foresee_start(config, plan);
  return start.finished ? "" : find_attempt(config, start.step);
}

RunReplay read_replay(const Config& config, const RunPlan& plan, const Roles& roles, const std::string& attempt,
                      int rank) {
  RunReplay replay;
  replay.attempt = attempt;
  replay.header = read_ledger_header(files_of(attempt).front());
  refuse_other_run(config, plan, roles, attempt, replay.header);
  const Recording all = read_recording(attempt, replay.header, rank, replay.recorded);
  for (std::size_t m = 0; m < all.meetings.size(); ++m) {
    const std::vector<std::int64_t>& updates = all.meetings[m].updates;
    const auto worker = static_cast<std::size_t>(rank);
    replay.script.push_back({.steps = worker < updates.size() ? updates[worker] : 0, .reasons = all.reasons[m]});
  }
  replay.told = text_of(attempt, replay.header, all);
  return replay;
}

}  // namespace

std::string arrivals_path(const std::string& attempt, int rank) {
  return fmt::format("{}/arrivals-{:04}.bin", attempt, rank);
}

void RunReplay::check_weights(const Arenas& arenas) const {
  if (!is_on() || header.weights == hex64(arenas.checksum())) return;
  throw ConfigError(
      fmt::format("{}: {} began at step {} with different weights from those of this run (checksum {}, here {}); begin "
                  "with the same seed, or from the same checkpoint (run.resume_from)",
                  kKey, attempt, header.first_step, header.weights, hex64(arenas.checksum())));
}

RunReplay open_replay(const Config& config, const RunPlan& plan, const Roles& roles, Group& group) {
  if (config.run.replay.empty()) return {};
  std::string attempt;
  all_or_none(group, [&] {
    if (group.rank() == 0) attempt = attempt_to_repeat(config, plan);
  });
  attempt = group.of_first(attempt);
  RunReplay replay;
  if (attempt.empty()) return replay;
  all_or_none(group, [&] { replay = read_replay(config, plan, roles, attempt, group.rank()); });
  return replay;
}

std::string foresee_replay(const Config& config, const RunPlan& plan, const Roles& roles) {
  const std::string attempt = config.run.replay.empty() ? "" : attempt_to_repeat(config, plan);
  return attempt.empty() ? "" : read_replay(config, plan, roles, attempt, 0).told;
}

}  // namespace echelon::inline run
