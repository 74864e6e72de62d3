// SPDX-License-Identifier: Apache-2.0
// Traces: spans are sent between ranks, put on lanes, written to the file that Perfetto opens, and summarised as text.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "report/trace/chrome.hpp"
#include "report/trace/summary.hpp"
#include "tests/support/process.hpp"
#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

Span span(SpanKind kind, double begin_s, double end_s, SpanLane lane = SpanLane::compute) {
  return {.begin_s = begin_s, .end_s = end_s, .step = 3, .kind = kind, .lane = lane};
}

// Makes one step of 100 ms: 10 ms of data, forward with a layer and a wait of 5 ms inside, backward, a wait, the
// optimiser, and hooks in which an evaluation waits.
RankTrace one_step(int rank, double at_s) {
  RankTrace trace;
  trace.rank = rank, trace.host = "h\"1", trace.role = "worker";
  const auto add = [&](SpanKind kind, double begin_ms, double end_ms, SpanLane lane = SpanLane::compute) -> Span& {
    trace.spans.push_back(span(kind, at_s + begin_ms / 1e3, at_s + end_ms / 1e3, lane));
    return trace.spans.back();
  };
  add(SpanKind::exchange_wait, 15, 20);
  add(SpanKind::layer, 12, 28).name = "conv";
  add(SpanKind::data, 0, 10);
  add(SpanKind::forward, 10, 30);
  add(SpanKind::backward, 30, 60);
  add(SpanKind::exchange_wait, 60, 70);
  add(SpanKind::optimiser, 70, 78);
  add(SpanKind::meeting, 79, 80);
  add(SpanKind::exchange_wait, 85, 88);
  add(SpanKind::evaluation, 82, 90);
  add(SpanKind::hooks, 80, 95);
  add(SpanKind::step, 0, 100);
  Span& first = add(SpanKind::exchange, 40, 65, SpanLane::exchange);
  first.index = 0, first.bytes = 4096;
  add(SpanKind::exchange, 50, 72, SpanLane::exchange).index = 1;
  add(SpanKind::send, 41, 44, SpanLane::sends).peer = 1 - rank;
  return trace;
}

TEST_CASE("the spans of a rank arrive as they were, and are refused cut off", "[report][trace]") {
  const RankTrace sent = one_step(1, 5);
  const std::string bytes = sent.pack();
  const RankTrace came = RankTrace::unpack(bytes);
  CHECK(came.rank == 1);
  CHECK(came.host == sent.host);
  CHECK(came.role == "worker");
  REQUIRE(came.spans.size() == sent.spans.size());
  for (std::size_t i = 0; i < came.spans.size(); ++i) {
    const Span &a = came.spans[i], &b = sent.spans[i];
    CHECK(std::tuple(a.begin_s, a.end_s, a.step, a.bytes, a.peer, a.index, a.kind, a.lane) ==
          std::tuple(b.begin_s, b.end_s, b.step, b.bytes, b.peer, b.index, b.kind, b.lane));
    CHECK(std::string(a.name ? a.name : "") == (b.name ? b.name : ""));
  }
  for (const std::size_t cut : {std::size_t{0}, std::size_t{9}, bytes.size() - 1})
    CHECK_THROWS_AS(RankTrace::unpack(bytes.substr(0, cut)), DataError);
}

TEST_CASE("what lies outside the window is left out, what reaches into it begins there", "[report][trace]") {
  RankTrace trace = one_step(0, 5);
  trace.move_times([](double at_s) { return 2 * at_s; });  // becomes 10 to 10.2
  trace.keep(10.05, 10.15);
  CHECK(trace.spans.size() == 9);
  for (const Span& each : trace.spans) {
    CHECK(each.begin_s >= 10.05);
    CHECK(each.begin_s <= 10.15);
  }
}

TEST_CASE("spans that overlap take as many lines as are under way at once", "[report][trace]") {
  const std::vector<double> drawn = random_values(600, "spans");
  std::vector<Span> spans;
  for (std::size_t i = 0; i < 300; ++i)
    spans.push_back(span(SpanKind::send, 10 * drawn[i], 10 * drawn[i] + 0.4 * std::abs(drawn[300 + i])));
  std::size_t most = 0;  // plain count: at every begin, how many spans are open
  for (const Span& at : spans) {
    std::size_t n = 0;
    for (const Span& other : spans) n += other.begin_s <= at.begin_s && at.begin_s < other.end_s ? 1 : 0;
    most = std::max(most, n);
  }
  const auto lines = on_lines(spans);
  CHECK(lines.size() == most);
  std::size_t all = 0;
  for (const auto& line : lines) {
    all += line.size();
    for (std::size_t i = 1; i < line.size(); ++i) CHECK(line[i - 1].end_s <= line[i].begin_s);
  }
  CHECK(all == spans.size());
}

TEST_CASE("what spans have in common with others", "[report][trace]") {
  const std::vector<Span> others = {span(SpanKind::data, 1, 2), span(SpanKind::data, 3, 5), span(SpanKind::data, 5, 6)};
  CHECK(common_s(span(SpanKind::exchange, 0, 10), others) == Approx(4));
  CHECK(common_s(span(SpanKind::exchange, 1.5, 4), others) == Approx(1.5));
  CHECK(common_s(span(SpanKind::exchange, 6, 7), others) == 0);
  const auto busy = merged({span(SpanKind::data, 3, 5), span(SpanKind::data, 0, 1), span(SpanKind::data, 4, 6)});
  REQUIRE(busy.size() == 2);
  CHECK(busy[1].end_s == 6);
}

TEST_CASE("a step is divided among its parts, the inner span's time being its own", "[report][trace]") {
  const TraceTimes times = times_of(one_step(0, 5));
  REQUIRE(times.steps.size() == 1);
  const auto ms = [&](TracePart part) { return 1e3 * times.steps.at(3)[static_cast<std::size_t>(part)]; };
  CHECK(ms(TracePart::data) == Approx(10));
  CHECK(ms(TracePart::forward) == Approx(15));  // with the layer's time
  CHECK(ms(TracePart::backward) == Approx(30));
  CHECK(ms(TracePart::exposed) == Approx(15));  // without the evaluation's wait
  CHECK(ms(TracePart::optimiser) == Approx(8));
  CHECK(ms(TracePart::meeting) == Approx(1));
  CHECK(ms(TracePart::hooks) == Approx(15));
  CHECK(ms(TracePart::other) == Approx(6));
  CHECK(times.total_s() == Approx(0.1));
  CHECK(times.compute_s() == Approx(0.063));
  CHECK(1e3 * times.hidden_s == Approx(22));  // 40 to 72, minus the wait from 60 to 70
}

TEST_CASE("the text names the slowest rank, the shares and the error of clocks", "[report][trace]") {
  RankTrace slow = one_step(1, 5);
  for (Span& each : slow.spans)
    if (each.kind == SpanKind::backward)
      each.end_s += 0.009;
    else if (each.kind == SpanKind::exchange_wait && each.begin_s > 5.05 && each.begin_s < 5.07)
      each.begin_s += 0.009;
  const std::vector<TraceTimes> ranks = {times_of(one_step(0, 5)), times_of(slow)};
  const TraceFacts facts{.steps = "3..3", .spans = 30, .error_s = 2.5e-6, .worst_rank = 1, .seconds = 0.1};
  const std::string text = trace_text(ranks, facts, true);
  INFO(text);
  CHECK_THAT(text, Catch::Contains("steps 3..3 of 2 ranks") && Catch::Contains("within 2.5 us of rank 0's") &&
                       Catch::Contains("rank 1 on h\"1: 72.00 ms") && Catch::Contains("rank 0: 63.00 ms") &&
                       Catch::Contains("exposed  meeting") && !Catch::Contains("did not fit"));
  CHECK_THAT(trace_text(ranks, {.steps = "3..3", .dropped = 5}, false), Catch::Contains("5 more spans did not fit"));
}

TEST_CASE("the file is the JSON object form of trace events, whole and nested", "[report][trace]") {
  const TempFolder folder;
  const std::string path = folder / "trace.json";
  {
    ChromeTrace file(path, 4.9);
    for (const int rank : {0, 1}) file.add(one_step(rank, 5));
    CHECK_THROWS(read_file_whole(path));  // the file appears only when it is complete
    file.close(R"({"steps": "3..3"})");
  }
  const auto json = nlohmann::json::parse(read_file_whole(path));
  CHECK(json["displayTimeUnit"] == "ms");
  CHECK(json["otherData"]["steps"] == "3..3");
  int named = 0, complete = 0;
  for (const auto& event : json["traceEvents"]) {
    const std::string phase = event["ph"];
    REQUIRE((phase == "M" || phase == "X"));
    CHECK(event["pid"].is_number_integer());
    if (event["name"] == "process_name") CHECK(event["args"]["name"].get<std::string>().starts_with("rank "));
    if (event["name"] == "thread_name") ++named;
    if (phase == "M") continue;
    ++complete;
    CHECK(event["ts"].get<double>() >= 0);
    CHECK(event["dur"].get<double>() >= 0);
    CHECK(event["tid"].is_number_integer());
  }
  CHECK(complete == 30);
  CHECK(named == 2 * 4);  // compute, two lines of exchange, and sends
  for (const auto& event : json["traceEvents"])
    if (event["name"] == "bucket 0") {
      CHECK(event["ts"].get<double>() == Approx(140'000));
      CHECK(event["dur"].get<double>() == Approx(25'000));
      CHECK(event["args"]["bytes"] == 4096);
      CHECK(event["args"]["exposed_us"].get<double>() == Approx(5'000));
    }
  CHECK_THROWS_AS(ChromeTrace(folder / "none/trace.json", 0), EnvironmentError);
}

TEST_CASE("what a device did has a row of its own, and no part in the host's shares", "[report][trace]") {
  RankTrace trace = one_step(0, 5);
  const PartTimes before = times_of(trace).sum;
  for (const double begin_s : {5.01, 5.08})
    trace.spans.push_back(span(SpanKind::backward, begin_s, begin_s + 0.03, SpanLane::device));
  CHECK(times_of(trace).sum == before);
  const TempFolder folder;
  ChromeTrace file(folder / "trace.json", 4.9);
  file.add(RankTrace::unpack(trace.pack()));
  file.close("{}");
  const auto json = nlohmann::json::parse(read_file_whole(folder / "trace.json"));
  int row = -1, spans = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] == "thread_name" && event["args"]["name"] == "device") row = event["tid"];
    if (event["ph"] != "X" || event["tid"] != row) continue;
    CHECK(event["name"] == "backward");
    CHECK(event["ts"].get<double>() == Approx(spans == 0 ? 110'000 : 180'000));
    CHECK(event["dur"].get<double>() == Approx(30'000));
    ++spans;
  }
  CHECK(spans == 2);
}

}  // namespace
}  // namespace echelon::test
