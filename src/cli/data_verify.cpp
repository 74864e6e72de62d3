// SPDX-License-Identifier: Apache-2.0
// echelon data inspect --verify
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/on_ranks.hpp"
#include "cli/options.hpp"
#include "comm/group.hpp"
#include "data/location.hpp"
#include "data/verify.hpp"
#include "job/agree.hpp"

namespace echelon::cli {
namespace {

constexpr int kVerifyChannel = 0;

enum class State : char { checked = 'c', unchecked = 'u', damaged = 'd', unreadable = 'r' };

struct Line {
  std::string verdict;  // column of the table
  std::uint64_t bytes = 0;
  State state = State::checked;

  std::string packed() const { return fmt::format("{} {} {}\n", static_cast<char>(state), bytes, verdict); }
};

struct Counts {
  explicit Counts(const std::vector<Line>& lines) {
    for (const Line& line : lines) {
      unchecked += line.state == State::unchecked ? 1 : 0;
      damaged += line.state == State::damaged ? 1 : 0;
      unreadable += line.state == State::unreadable ? 1 : 0;
    }
  }
  std::int64_t unchecked = 0, damaged = 0, unreadable = 0;
};

Line line_of(const ShardVerdict& found) {
  Line line{.verdict = "ok", .bytes = found.bytes};
  if (!found.wrong.empty()) {  // a filter that is not installed, for example: nothing says that the bytes are wrong
    line.state = State::unreadable;
    line.verdict = "cannot be read: " + found.wrong;
  } else if (!found.damaged.empty()) {
    line.state = State::damaged;
    line.verdict = "damaged: " + damage_text(found);
  } else if (!found.unchecked.empty()) {
    line.state = State::unchecked;
    line.verdict = fmt::format("read; no checksums of {}", fmt::join(found.unchecked, ", "));
  }
  std::replace(line.verdict.begin(), line.verdict.end(), '\n', ' ');
  return line;
}

// Splits the verdicts of one rank, one per line.
std::vector<Line> unpacked(const std::string& text) {
  std::vector<Line> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    std::size_t digits = 0;
    Line& next = lines.emplace_back();
    next.state = static_cast<State>(line[0]);
    next.bytes = std::stoull(line.substr(2), &digits);
    next.verdict = line.substr(2 + digits + 1);
    at = end + 1;
  }
  return lines;
}

void print_table(const std::vector<std::string>& files, const std::vector<Line>& lines, double seconds, int ranks) {
  Table table({"file", "read", "verdict"});
  double bytes = 0;
  const Counts counts(lines);
  for (std::size_t i = 0; i < files.size(); ++i) {
    bytes += static_cast<double>(lines[i].bytes);
    table.row({std::filesystem::path(files[i]).filename().string(), bytes_text(static_cast<double>(lines[i].bytes)),
               lines[i].verdict});
  }
  fmt::print("{}", table.text());
  fmt::print("{} read by {} in {}, {}/s: {} damaged, {}{} without checksums\n", bytes_text(bytes),
             counted(ranks, "rank"), seconds_text(seconds), bytes_text(bytes / seconds), counts.damaged,
             counts.unreadable > 0 ? fmt::format("{} cannot be read, ", counts.unreadable) : "", counts.unchecked);
}

}  // namespace

int run_data_verify(const std::string& location) {
  return on_ranks([&](Engine* engine) {
    std::optional<Group> group;
    if (engine != nullptr) group.emplace(*engine, kVerifyChannel);
    const auto together = [&](const std::function<void()>& body) { group ? all_or_none(*group, body) : body(); };
    const int ranks = engine != nullptr ? engine->size() : 1, rank = engine != nullptr ? engine->rank() : 0;
    std::vector<std::string> files;
    together([&] { files = files_at(location); });
    const double start = now_s();
    std::string own;
    for (std::size_t i = static_cast<std::size_t>(rank); i < files.size(); i += static_cast<std::size_t>(ranks))
      own += line_of(verify_shard(files[i])).packed();
    const std::vector<std::string> of_ranks = group ? group->gather(own) : std::vector<std::string>{own};
    std::vector<Line> lines(files.size());
    for (std::size_t r = 0; r < of_ranks.size(); ++r) {
      const std::vector<Line> some = unpacked(of_ranks[r]);
      for (std::size_t i = 0; i < some.size(); ++i) lines[r + i * of_ranks.size()] = some[i];
    }
    if (rank == 0) print_table(files, lines, now_s() - start, ranks);
    const Counts counts(lines);
    const std::string all = counted(static_cast<std::int64_t>(files.size()), "file");
    const std::string unread = fmt::format("{} cannot be read", counts.unreadable);
    if (counts.damaged > 0)
      throw CommonError(kExitData, fmt::format("{}: {} of {} damaged{}", location, counts.damaged, all,
                                               counts.unreadable > 0 ? ", " + unread : ""));
    if (counts.unreadable > 0)
      throw CommonError(kExitData, fmt::format("{}: {} of {} cannot be read", location, counts.unreadable, all));
    return static_cast<int>(kExitOk);
  });
}

}  // namespace echelon::cli
