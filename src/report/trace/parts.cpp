// SPDX-License-Identifier: Apache-2.0
#include "report/trace/parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/atomic_file.hpp"
#include "base/clock.hpp"
#include "base/version.hpp"
#include "report/trace/chrome.hpp"
#include "report/trace/summary.hpp"

namespace echelon::inline report {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLook{10};

std::string part_path(const std::string& attempt, std::size_t rank) {
  return fmt::format("{}/trace-{:04}.part", attempt, rank);
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Waits until the parts of all ranks that are not lost are there.
void wait_for_parts(const std::string& attempt, const BrokenRun& run) {
  const double until_s = now_s() + run.patience_s;
  for (std::size_t rank = 0; rank < run.hosts.size(); ++rank) {
    const bool lost = std::find(run.lost.begin(), run.lost.end(), static_cast<int>(rank)) != run.lost.end();
    while (!lost && !is_there(part_path(attempt, rank)) && now_s() < until_s) std::this_thread::sleep_for(kLook);
  }
}

struct Window {
  double begin_s = std::numeric_limits<double>::infinity(), end_s = -begin_s;
};

// Returns the time from the first to the last span of ranks that do steps, including the step in which the run broke
// off.
Window window_of(const std::vector<RankTrace>& ranks) {
  Window of_steps, of_all;
  const auto add = [](Window& window, const Span& span) {
    window.begin_s = std::min(window.begin_s, span.begin_s);
    window.end_s = std::max(window.end_s, span.end_s);
  };
  for (const RankTrace& rank : ranks)
    for (const Span& span : rank.spans) {
      add(of_all, span);
      if (span.lane == SpanLane::compute) add(of_steps, span);
    }
  return of_steps.end_s > of_steps.begin_s ? of_steps : of_all;
}

}  // namespace

void write_trace_part(const std::string& attempt, const RankTrace& rank) {
  write_file_whole(part_path(attempt, static_cast<std::size_t>(rank.rank)), rank.pack());
}

void wait_for_join(const std::string& attempt, int rank, double patience_s) {
  const double until_s = now_s() + patience_s;
  while (is_there(part_path(attempt, static_cast<std::size_t>(rank))) && now_s() < until_s)
    std::this_thread::sleep_for(kLook);
}

std::string join_trace_parts(const std::string& attempt, const BrokenRun& run) {
  wait_for_parts(attempt, run);
  std::vector<RankTrace> ranks;
  TraceFacts facts{.steps = run.steps, .incomplete = run.why};
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < run.hosts.size(); ++rank) {
    const std::string path = part_path(attempt, rank);
    if (is_there(path)) {
      ranks.push_back(RankTrace::unpack(read_file_whole(path)));
      continue;
    }
    missing.push_back(static_cast<int>(rank));
    facts.missing.push_back(fmt::format("{} on {}", rank, run.hosts[rank]));
  }
  const Window window = window_of(ranks);
  if (window.end_s > window.begin_s) {
    facts.seconds = window.end_s - window.begin_s;
    ChromeTrace file(attempt + "/trace.json", window.begin_s);
    std::vector<TraceTimes> times;
    for (RankTrace& rank : ranks) {
      rank.keep(window.begin_s, window.end_s);
      file.add(rank);
      facts.add(rank);
      times.push_back(times_of(rank));
    }
    const nlohmann::ordered_json other = {
        {"steps", run.steps},       {"ranks", run.hosts.size()},      {"incomplete", run.why},
        {"missing_ranks", missing}, {"dropped_spans", facts.dropped}, {"echelon", kVersion}};
    file.close(other.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    write_file_whole(attempt + "/trace.txt", trace_text(times, facts, true));
  }
  std::error_code ignored;
  for (std::size_t rank = 0; rank < run.hosts.size(); ++rank) fs::remove(part_path(attempt, rank), ignored);
  if (window.end_s <= window.begin_s) return {};
  return fmt::format(
      "trace     steps {} up to the end of the run, {}: trace.txt, trace.json", run.steps,
      missing.empty() ? "of all ranks" : fmt::format("without ranks {}", fmt::join(facts.missing, ", ")));
}

}  // namespace echelon::inline report
