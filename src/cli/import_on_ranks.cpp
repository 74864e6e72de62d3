// SPDX-License-Identifier: Apache-2.0
#include "cli/import_on_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "cli/import_text.hpp"
#include "cli/on_ranks.hpp"
#include "comm/group.hpp"
#include "data/verify.hpp"
#include "job/agree.hpp"
#include "job/launch.hpp"
#include "job/run_lock.hpp"

namespace echelon::cli {
namespace {

constexpr int kImportChannel = 0;
constexpr std::size_t kShown = 10;  // entries shown of what was left out

// `group` may be empty in a lone process.
ImportTeam team_of(std::optional<Group>& group, RunLock& lock) {
  ImportTeam team;
  team.hold = [&lock](const std::string& folder) { lock.take(folder, job_id()); };
  if (!group) return team;
  team.rank = group->rank();
  team.size = group->size();
  team.gather = [&group](const std::string& own) { return group->gather(own); };
  team.together = [&group](const std::function<void()>& body) { all_or_none(*group, body); };
  return team;
}

void print_left_out(const ImportWritten& written, const std::string& out) {
  if (written.damaged.empty()) return;
  fmt::print("{} left out, see {}/left_out.txt:\n", count_text(static_cast<std::int64_t>(written.damaged.size())), out);
  for (std::size_t i = 0; i < std::min(kShown, written.damaged.size()); ++i) fmt::print("  {}\n", written.damaged[i]);
  if (written.damaged.size() > kShown) fmt::print("  .. and {} more\n", written.damaged.size() - kShown);
}

// Returns the bytes read back. The ranks share the files.
double verified_bytes(const std::vector<std::string>& files, const ImportTeam& team, std::optional<Group>& group) {
  std::vector<std::string> own;
  for (auto i = static_cast<std::size_t>(team.rank); i < files.size(); i += static_cast<std::size_t>(team.size))
    own.push_back(files[i]);
  double bytes = 0;
  team.together([&] { bytes = static_cast<double>(require_intact(own)); });
  if (group) group->sum(std::span(&bytes, 1));
  return bytes;
}

}  // namespace

int import_on_ranks(const ImportOptions& options, const char* unit,
                    const std::function<ImportWritten(const ImportTeam&)>& write) {
  return on_ranks([&](Engine* engine) {
    std::optional<Group> group;
    if (engine != nullptr) group.emplace(*engine, kImportChannel);
    RunLock lock({.use = "is being filled", .advice = "name another folder with --out"});
    const ImportTeam team = team_of(group, lock);
    const double start = now_s();
    const ImportWritten written = write(team);
    const double written_s = now_s() - start;
    const double bytes = options.verify ? verified_bytes(written.shards.files, team, group) : 0;
    const double verified_s = now_s() - start - written_s;
    if (team.rank > 0) return static_cast<int>(kExitOk);
    print_samples_written(written.shards, written.targets, written_s);
    if (written.kept > 0)
      fmt::print("{} of {} existed already, made from the same {} with the same options\n", written.kept,
                 counted(static_cast<std::int64_t>(written.shards.files.size()), "file"), unit);
    if (written.changed > 0)
      fmt::print("{} of {} existed of an earlier attempt, but the {} or the options have changed: made anew\n",
                 written.changed, counted(std::ssize(written.shards.files), "file"), unit);
    print_left_out(written, options.out);
    print_passed_over(written.passed);
    print_warning(written.shards.empty_classes);
    print_measured(written.shards);
    if (options.verify) print_verified(bytes, verified_s);
    print_files_written(written.shards.files);
    return static_cast<int>(kExitOk);
  });
}

}  // namespace echelon::cli
