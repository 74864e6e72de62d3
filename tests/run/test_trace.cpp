// SPDX-License-Identifier: Apache-2.0
// run.trace on real ranks: the structure of the file, agreement with the times in metrics.jsonl for the same steps, and
// every strategy.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/atomic_file.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;

struct Event {
  std::string name, cat;
  int pid = 0, tid = 0;
  double begin = 0, end = 0;  // us
  std::int64_t step = 0;
  bool in_hooks = false;  // inside hooks or a meeting
};

struct Trace {
  std::vector<Event> events;                         // in file order
  std::map<std::pair<int, int>, std::string> lanes;  // keyed by pid and tid
  std::map<int, std::string> ranks;
  nlohmann::json facts;
  bool has(const std::string& lane) const {
    for (const auto& [where, name] : lanes)
      if (name == lane) return true;
    return false;
  }
  std::set<std::string> cats() const {
    std::set<std::string> all;
    for (const Event& event : events) all.insert(event.cat);
    return all;
  }
};

// Returns a row's seconds without those of hooks.
double training_s(const nlohmann::json& time) {
  double seconds = time["total"];
  for (const char* hooks : {"evaluation", "checkpoint", "hooks"}) seconds -= time[hooks].get<double>();
  return seconds;
}

Trace read_trace(const test::Trial& trial) {
  const auto json = nlohmann::json::parse(read_file_whole(trial.attempt() + "/trace.json"));
  Trace trace;
  trace.facts = json["otherData"];
  for (const auto& event : json["traceEvents"]) {
    const int pid = event["pid"];
    if (event["name"] == "process_name") trace.ranks[pid] = event["args"]["name"];
    if (event["name"] == "thread_name") trace.lanes[{pid, event["tid"]}] = event["args"]["name"];
    if (event["ph"] != "X") continue;
    Event e{.name = event["name"], .cat = event["cat"], .pid = pid, .tid = event["tid"], .begin = event["ts"]};
    e.end = e.begin + event["dur"].get<double>();
    e.step = event["args"]["step"];
    trace.events.push_back(e);
  }
  return trace;
}

// Checks that spans of a lane follow one another, or nest in the compute and engine lanes, and that all have names.
void check_structure(Trace& trace) {
  constexpr double kRounding_us = 2e-3;
  std::map<std::pair<int, int>, std::vector<Event*>> lanes;
  for (Event& event : trace.events) lanes[{event.pid, event.tid}].push_back(&event);
  for (auto& [where, events] : lanes) {
    INFO("rank " << where.first << ", lane " << trace.lanes[where]);
    REQUIRE(trace.lanes.contains(where));
    const bool nests = trace.lanes[where] == "compute" || trace.lanes[where] == "engine";
    std::vector<const Event*> open;
    double last = -1;
    bool rises = true, fits = true;
    for (Event* event : events) {
      rises &= event->begin >= last && event->end >= event->begin && event->begin >= 0;
      last = event->begin;
      while (!open.empty() && open.back()->end <= event->begin + kRounding_us) open.pop_back();
      fits &= open.empty() || (nests && event->end <= open.back()->end + kRounding_us);
      event->in_hooks = event->cat == "hooks" || event->cat == "meeting" || (!open.empty() && open.back()->in_hooks);
      open.push_back(event);
    }
    CHECK(rises);
    CHECK(fits);
  }
}

double seconds_of(const Trace& trace, int rank, std::int64_t step, const std::string& cat) {
  double sum = 0;
  for (const Event& event : trace.events)
    if (event.pid == rank && event.step == step && event.cat == cat && (cat == "hooks" || !event.in_hooks))
      sum += (event.end - event.begin) / 1e6;
  return sum;
}

std::set<std::int64_t> steps_of(const Trace& trace, int rank) {
  std::set<std::int64_t> steps;
  for (const Event& event : trace.events)
    if (event.pid == rank && event.cat == "step") steps.insert(event.step);
  return steps;
}

// Compares the trace with the metrics of rank 0, the only rank that writes them.
void check_against_metrics(const Trace& trace, const test::Trial& trial, std::int64_t first, std::int64_t last,
                           bool all_steps = true) {
  // Where replicas come to a meeting in steps of their own, its row names the step of the furthest one.
  std::map<std::int64_t, int> rows;
  for (const auto& row : trial.metrics())
    if (row["type"] == "step") ++rows[row["step"]];
  const std::set<std::int64_t> own = steps_of(trace, 0);
  int compared = 0;
  // Both read the clock by themselves, and a thread may lose its core between two readings: one step may differ.
  std::vector<std::string> apart;
  const auto compare = [&](std::int64_t step, const std::string& what, double in_trace, double in_row) {
    if (std::abs(in_trace - in_row) > 1e-5)
      apart.push_back(
          fmt::format("step {}, {}: {:.6f} s in the trace, {:.6f} s in its row", step, what, in_trace, in_row));
  };
  for (const auto& row : trial.metrics()) {
    if (row["type"] != "step" || row["step"] < first || row["step"] > last || rows[row["step"]] > 1) continue;
    const std::int64_t step = row["step"];
    if (!all_steps && !own.contains(step)) continue;  // the row of a late gradient names the step to which it led
    ++compared;
    const auto& time = row["time"];
    compare(step, "step", seconds_of(trace, 0, step, "step") - seconds_of(trace, 0, step, "hooks"), training_s(time));
    compare(step, "data", seconds_of(trace, 0, step, "data"), time["data"].get<double>());
    if (!row.contains("exchange_exposed_s") || row["exchange_exposed_s"].is_null()) continue;
    compare(step, "exchange", seconds_of(trace, 0, step, "exchange wait"), row["exchange_exposed_s"].get<double>());
  }
  CHECK(compared > 0);
  if (apart.size() > 1) CHECK(apart == std::vector<std::string>());
}

Trace traced(const test::Trial& trial, int ranks, test::Sets sets, const std::string& steps = "steps 10..20") {
  sets.push_back("run.trace=\"" + steps + "\"");
  const test::Outcome outcome = trial.train(ranks, sets);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("trace     steps") && Catch::Contains("exposed  meeting"));
  CHECK_THAT(read_file_whole(trial.attempt() + "/trace.txt"),
             Catch::Contains("compute ms, least") && Catch::Contains("exposed  meeting"));
  Trace trace = read_trace(trial);
  CHECK(trace.ranks.size() == static_cast<std::size_t>(std::max(1, ranks)));
  check_structure(trace);
  return trace;
}

const std::set<std::int64_t> kWindow = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

TEST_CASE("a trace of three ranks agrees with the metrics, across an epoch's evaluation and checkpoint",
          "[run][trace]") {
  const test::Trial trial;
  const std::string overlap = GENERATE("layers", "buckets", "none");
  const Trace trace = traced(trial, 3, {"exchange.overlap=" + overlap, "exchange.bucket_mb=0.01"});
  for (const int rank : {0, 1, 2}) {
    CHECK(steps_of(trace, rank) == kWindow);
    CHECK_THAT(trace.ranks.at(rank), Catch::StartsWith(fmt::format("rank {}, worker on ", rank)));
  }
  check_against_metrics(trace, trial, 10, 20);
  for (const char* cat : {"forward", "backward", "layer", "optimizer", "evaluation", "checkpoint", "exchange", "send",
                          "receive", "sum", "hooks", "meeting"})
    CHECK(trace.cats().contains(cat));
  for (const char* lane : {"compute", "engine", "exchange", "sends", "receives"}) CHECK(trace.has(lane));
}

TEST_CASE("clocks of ranks of one host are found to be one, within the error that is stated", "[run][trace]") {
  const test::Trial trial;
  const Trace trace = traced(trial, 3, {"train.epochs=2"});
  REQUIRE(trace.facts["clock_offset_us"].size() == 3);
  for (std::size_t rank = 1; rank < 3; ++rank) {
    const double offset = trace.facts["clock_offset_us"][rank], error = trace.facts["clock_error_us"][rank];
    INFO("rank " << rank << ": " << offset << " us, error " << error << " us");
    CHECK(error > 0);
    CHECK(error < 1e4);
    CHECK(std::abs(offset) <= error + 0.1);
  }
}

TEST_CASE("every strategy is traced, on all its ranks", "[run][trace][slow]") {
  struct Case {
    int ranks;
    test::Sets sets;
    std::set<std::string> cats;
    std::set<int> servers = {};
    bool in_window = true;  // all workers do every step
  };
  const Case one = GENERATE(
      Case{2, {"exchange.codec=int8"}, {"encode", "decode", "exchange"}},
      Case{3, {"exchange.strategy=server", "exchange.server.ranks=1"}, {"exchange", "sum", "send"}, {2}},
      Case{3,
           {"exchange.strategy=asynchronous", "exchange.server.ranks=1", "exchange.codec=fp16"},
           {"exchange", "serve", "encode", "decode"},
           {2}},
      Case{2, {"exchange.strategy=stale_synchronous"}, {"exchange", "serve"}},
      Case{2, {"exchange.strategy=averaging", "exchange.averaging.period=4"}, {"exchange", "meeting"}},
      Case{2, {"exchange.strategy=elastic"}, {"exchange"}},
      Case{3, {"exchange.strategy=backup"}, {"exchange", "serve"}, {}, false},
      Case{2, {"exchange.strategy=gossip"}, {"exchange"}}, Case{2, {"exchange.strategy=strom"}, {"encode", "send"}},
      Case{2, {"parallel.pipeline=2", "batch.accumulation=2"}, {"split wait"}},
      Case{2, {"parallel.tensor=2"}, {"split wait"}}, Case{0, {}, {"forward", "backward", "optimizer"}});
  const test::Trial trial;
  INFO(one.ranks << " ranks, " << (one.sets.empty() ? "alone" : one.sets.front()));
  const Trace trace = traced(trial, one.ranks, one.sets);
  const std::set<std::string> cats = trace.cats();
  for (const std::string& cat : one.cats) {
    INFO("spans of " << cat);
    CHECK(cats.contains(cat));
  }
  for (int rank = 0; rank < std::max(1, one.ranks); ++rank) {
    INFO("rank " << rank);
    if (one.servers.contains(rank)) CHECK_THAT(trace.ranks.at(rank), Catch::Contains("server"));
    if (!one.servers.contains(rank) && one.in_window) CHECK(steps_of(trace, rank) == kWindow);
  }
  check_against_metrics(trace, trial, 10, 20, one.in_window);
}

TEST_CASE("a resumed run traces the steps that are left, and none behind the window", "[run][trace][slow]") {
  const test::Trial trial;
  const test::Sets half = {"run.trace=\"steps 5..40\""};
  REQUIRE(trial.train(2, test::with(half, {"train.steps=20"})).code == 0);
  const test::Outcome rest = trial.train(2, half);
  INFO(rest.out << rest.err);
  REQUIRE(rest.code == 0);
  Trace trace = read_trace(trial);
  check_structure(trace);
  const std::set<std::int64_t> steps = steps_of(trace, 1);
  CHECK(steps.size() == 20);
  CHECK(*steps.begin() == 21);
  CHECK(*steps.rbegin() == 40);

  const test::Outcome more = trial.train(2, test::with(half, {"train.epochs=4"}));
  INFO(more.out << more.err);
  CHECK(more.code == 0);
  CHECK_THAT(more.out, Catch::Contains("steps 5..40 were done before this attempt"));
  CHECK(!fs::exists(trial.attempt() + "/trace.json"));
}

TEST_CASE("a window behind the end is refused; one that the end cuts, or that is not reached, is told",
          "[run][trace]") {
  const test::Trial trial;
  const test::Outcome late = trial.train(0, {"run.trace=\"steps 60..70\""});
  CHECK(late.code == 2);
  CHECK_THAT(late.err, Catch::Contains("after the last step of the run, 51") && Catch::Contains("steps 41..51"));
  CHECK(trial.check({"run.trace=\"steps 60..70\""}).code == 2);
  CHECK(trial.check({"run.trace=\"step 51\""}).code == 0);

  const test::Outcome early =
      trial.train(2, {"run.trace=\"steps 40..50\"", "goal.metric=test_loss", "goal.target=100", "goal.stop=true"});
  INFO(early.out << early.err);
  CHECK(early.code == 0);
  CHECK_THAT(early.out, Catch::Contains("the run ended at step 17, before steps 40..50: nothing was traced"));
  CHECK(!fs::exists(trial.attempt() + "/trace.json"));

  const test::Trial cut;
  const Trace trace = traced(cut, 2, {"train.steps=12"}, "steps 10..20");
  CHECK(steps_of(trace, 1) == std::set<std::int64_t>{10, 11, 12});
}

}  // namespace
}  // namespace echelon
