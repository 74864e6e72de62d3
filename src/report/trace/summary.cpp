// SPDX-License-Identifier: Apache-2.0
#include "report/trace/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/text.hpp"

namespace echelon::inline report {
namespace {

constexpr std::size_t kMostRows = 64;  // rows of the table of ranks in the log; trace.txt has all of them

std::size_t index(TracePart part) { return static_cast<std::size_t>(part); }

// `outer`: part of the enclosing span.
TracePart part_of(SpanKind kind, TracePart outer) {
  if (outer == TracePart::hooks || outer == TracePart::meeting) return outer;
  switch (kind) {
    case SpanKind::data: return TracePart::data;
    case SpanKind::forward: return TracePart::forward;
    case SpanKind::backward: return TracePart::backward;
    case SpanKind::split_wait: return TracePart::split;
    case SpanKind::exchange_wait: return TracePart::exposed;
    case SpanKind::optimiser: return TracePart::optimiser;
    case SpanKind::meeting: return TracePart::meeting;
    case SpanKind::hooks:
    case SpanKind::evaluation:
    case SpanKind::checkpoint: return TracePart::hooks;
    default: return outer;
  }
}

struct Open {
  Span span;
  TracePart part;
};

void add(TraceTimes& times, const Open& open, double seconds) {
  times.sum[index(open.part)] += seconds;
  if (const auto step = times.steps.find(open.span.step); step != times.steps.end())
    step->second[index(open.part)] += seconds;
}

double sum_of(const PartTimes& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); }
double compute_of(const PartTimes& parts) {
  return parts[index(TracePart::data)] + parts[index(TracePart::forward)] + parts[index(TracePart::backward)] +
         parts[index(TracePart::optimiser)];
}

std::string ms(double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); }
std::string percent(double part, double whole) { return whole > 0 ? fmt::format("{:.1f}", 100 * part / whole) : "-"; }
double mean_compute_s(const TraceTimes& rank) {
  return rank.steps.empty() ? 0 : rank.compute_s() / static_cast<double>(rank.steps.size());
}

std::string ranks_table(const std::vector<TraceTimes>& ranks, std::size_t most) {
  std::vector<std::string> head = {"rank", "role", "host", "steps", "ms a step"};
  for (const char* part : kTraceParts) head.emplace_back(part);
  head.emplace_back("hidden ms");
  Table out(head);
  for (std::size_t i = 0; i < std::min(most, ranks.size()); ++i) {
    const TraceTimes& rank = ranks[i];
    const double steps = static_cast<double>(std::max<std::size_t>(1, rank.steps.size()));
    std::vector<std::string> row = {fmt::format("{}", rank.rank), rank.role, rank.host,
                                    fmt::format("{}", rank.steps.size()),
                                    rank.steps.empty() ? "-" : ms(rank.total_s() / steps)};
    for (const double part : rank.sum) row.push_back(percent(part, rank.total_s()));
    row.push_back(rank.steps.empty() ? "-" : ms(rank.hidden_s / steps));
    out.row(row);
  }
  return out.text();
}

// For each step, how long it took and which rank the others waited for.
std::string steps_table(const std::vector<TraceTimes>& ranks) {
  struct Row {
    double longest_s = 0, most_s = 0, least_s = 1e300, exposed_s = 0;
    int slowest = -1, ranks = 0;
  };
  std::map<std::int64_t, Row> rows;
  for (const TraceTimes& rank : ranks)
    for (const auto& [step, parts] : rank.steps) {
      Row& row = rows[step];
      const double compute_s = compute_of(parts);
      row.longest_s = std::max(row.longest_s, sum_of(parts));
      if (compute_s > row.most_s || row.slowest < 0) row.slowest = rank.rank;
      row.most_s = std::max(row.most_s, compute_s);
      row.least_s = std::min(row.least_s, compute_s);
      row.exposed_s += parts[index(TracePart::exposed)];
      ++row.ranks;
    }
  Table out({"step", "ranks", "ms", "compute ms, least", "most", "of rank", "exposed ms, mean"});
  for (const auto& [step, row] : rows)
    out.row({fmt::format("{}", step), fmt::format("{}", row.ranks), ms(row.longest_s), ms(row.least_s), ms(row.most_s),
             fmt::format("{}", row.slowest), ms(row.exposed_s / row.ranks)});
  return out.text();
}

std::string slowest_text(const std::vector<TraceTimes>& ranks) {
  std::vector<const TraceTimes*> working;
  for (const TraceTimes& rank : ranks)
    if (!rank.steps.empty()) working.push_back(&rank);
  if (working.size() < 2) return "";
  const auto [least, most] = std::minmax_element(
      working.begin(), working.end(),
      [](const TraceTimes* a, const TraceTimes* b) { return mean_compute_s(*a) < mean_compute_s(*b); });
  return fmt::format("slowest   rank {} on {}: {} ms of compute a step; the fastest, rank {}: {} ms\n", (*most)->rank,
                     (*most)->host, ms(mean_compute_s(**most)), (*least)->rank, ms(mean_compute_s(**least)));
}

}  // namespace

double TraceTimes::total_s() const { return sum_of(sum); }
double TraceTimes::compute_s() const { return compute_of(sum); }

TraceTimes times_of(const RankTrace& rank) {
  TraceTimes times;
  times.rank = rank.rank, times.host = rank.host, times.role = rank.role;
  const std::vector<Span> spans = in_order(rank.spans, SpanLane::compute);
  for (const Span& span : spans)
    if (span.kind == SpanKind::step) times.steps[span.step];
  std::vector<Open> open;
  std::vector<Span> waits;
  for (const Span& span : spans) {
    while (!open.empty() && open.back().span.end_s <= span.begin_s) open.pop_back();
    const double seconds = span.end_s - span.begin_s;
    if (!open.empty()) add(times, open.back(), -seconds);
    open.push_back({span, part_of(span.kind, open.empty() ? TracePart::other : open.back().part)});
    add(times, open.back(), seconds);
    if (span.kind == SpanKind::exchange_wait) waits.push_back(span);
  }
  std::vector<Span> buckets;
  for (const Span& span : rank.spans)
    if (span.lane == SpanLane::exchange) buckets.push_back(span);
  for (const Span& busy : merged(std::move(buckets)))
    times.hidden_s += busy.end_s - busy.begin_s - common_s(busy, waits);
  return times;
}

void TraceFacts::add(const RankTrace& rank) {
  spans += rank.spans.size(), dropped += rank.dropped;
  if (rank.clock_error_s > error_s) error_s = rank.clock_error_s, worst_rank = rank.rank;
}

std::string trace_text(const std::vector<TraceTimes>& ranks, const TraceFacts& facts, bool with_steps) {
  std::string text = fmt::format("trace     steps {} of {}, {}: {} spans in trace.json (for ui.perfetto.dev)\n",
                                 facts.steps, counted(static_cast<std::int64_t>(ranks.size()), "rank"),
                                 seconds_text(facts.seconds), count_text(static_cast<std::int64_t>(facts.spans)));
  if (!facts.incomplete.empty())
    text +=
        fmt::format("incomplete: the run ended before all steps were traced: {}\nmissing   {}\n", facts.incomplete,
                    facts.missing.empty() ? "no rank" : fmt::format("rank {}", fmt::join(facts.missing, ", rank ")));
  if (facts.dropped > 0)
    text += fmt::format("          {} more spans did not fit: trace fewer steps\n",
                        count_text(static_cast<std::int64_t>(facts.dropped)));
  if (ranks.size() > 1)
    text += fmt::format("clocks    within {:.1f} us of rank 0's clock; rank {} is the worst\n", 1e6 * facts.error_s,
                        facts.worst_rank);
  text += slowest_text(ranks);
  text += "shares of the time of each rank in %; hidden: the part of a step's exchange for which it did not wait\n";
  text += ranks_table(ranks, with_steps ? ranks.size() : kMostRows);
  if (!with_steps && ranks.size() > kMostRows)
    text += fmt::format("and {} more, in trace.txt\n",
                        counted(static_cast<std::int64_t>(ranks.size() - kMostRows), "rank"));
  if (with_steps) text += "\n" + steps_table(ranks);
  return text;
}

}  // namespace echelon::inline report
