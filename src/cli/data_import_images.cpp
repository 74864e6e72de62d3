// SPDX-License-Identifier: Apache-2.0
// echelon data import images | tar
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/import_text.hpp"
#include "cli/on_ranks.hpp"
#include "cli/options.hpp"
#include "comm/group.hpp"
#include "data/import/image_import.hpp"
#include "data/verify.hpp"
#include "job/agree.hpp"
#include "job/launch.hpp"
#include "job/run_lock.hpp"

namespace echelon::cli {
namespace {

constexpr int kImportChannel = 0;
constexpr std::size_t kShown = 10;  // entries shown of the images left out

// Height and width of "32" or "24x48"; 0 and 0 for "".
std::pair<int, int> extents_of(std::string_view text) {
  constexpr int kMost = 8192;  // with 3 channels at most 2^26 * 3 bytes per sample
  const auto number = [](std::string_view digits) {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value <= kMost ? value : 0;
  };
  if (text.empty()) return {0, 0};
  const std::size_t x = text.find('x');
  const int height = number(text.substr(0, x));
  const int width = x == std::string_view::npos ? height : number(text.substr(x + 1));
  if (height < 1 || width < 1)
    throw ConfigError(fmt::format("--size is '{}', must be H or HxW, each from 1 to {}", text, kMost));
  return {height, width};
}

ImageRequest image_request(const ImportOptions& options) {
  const auto [height, width] = extents_of(options.size);
  if (options.channels != 1 && options.channels != 3)
    throw ConfigError(fmt::format("--channels is {}, must be 1 (grey) or 3 (red, green, blue)", options.channels));
  return {.format = options.format,
          .inputs = options.inputs,
          .height = height,
          .width = width,
          .channels = options.channels,
          .skip_damaged = options.skip_damaged,
          .labels_as_they_are = options.labels_as_they_are || !options.like.empty(),
          .like = options.like};
}

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

void print_left_out(const ImagesWritten& written, const std::string& out) {
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

int run_image_import(const ImportOptions& options) {
  const ImageRequest request = image_request(options);
  const ShardOptions shards = shard_options(options);
  return on_ranks([&](Engine* engine) {
    std::optional<Group> group;
    if (engine != nullptr) group.emplace(*engine, kImportChannel);
    RunLock lock({.use = "is being filled", .advice = "name another folder with --out"});
    const ImportTeam team = team_of(group, lock);
    const double start = now_s();
    const ImagesWritten written = write_images(request, shards, team);
    const double written_s = now_s() - start;
    const double bytes = options.verify ? verified_bytes(written.shards.files, team, group) : 0;
    const double verified_s = now_s() - start - written_s;
    if (team.rank > 0) return static_cast<int>(kExitOk);
    print_samples_written(written.shards, 0, written_s);
    if (written.kept > 0)
      fmt::print("{} of {} existed already, made from the same images with the same options\n", written.kept,
                 counted(static_cast<std::int64_t>(written.shards.files.size()), "file"));
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
