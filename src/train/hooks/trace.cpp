// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "report/trace/chrome.hpp"
#include "report/trace/parts.hpp"
#include "report/trace/summary.hpp"

namespace echelon::inline train {
namespace {

constexpr double kNever_s = std::numeric_limits<double>::infinity();

std::string steps_text(const TraceSteps& steps) { return fmt::format("{}..{}", steps.first, steps.last); }

}  // namespace

TraceHook::TraceHook(TraceSetting setting, SpanRecorder& recorder, Engine& engine)
    : setting_(std::move(setting)), recorder_(recorder), engine_(engine), group_(engine, setting_.channel) {}

void TraceHook::run_begin(std::int64_t first_step) {
  recorder_.begins_at(first_step);
  reached_ = first_step;
  if (first_step >= setting_.steps.last) {
    done_ = true;
    log_info("trace     steps {} were done before this attempt, so that it traces nothing", steps_text(setting_.steps));
    return;
  }
  near_ = first_step + 1 >= setting_.steps.first;
  estimate_before();
}

// Every rank is told its own, for a trace that nobody gathers.
void TraceHook::estimate_before() {
  std::vector<ClockOffset> offsets = before_ = estimate_clock_offsets(engine_, setting_.channel, engine_.clock());
  offsets.resize(static_cast<std::size_t>(group_.size()));
  group_.broadcast(offsets.data(), offsets.size() * sizeof(ClockOffset), 0);
  const std::lock_guard lock(leaving_);
  own_ = offsets[static_cast<std::size_t>(group_.rank())];
  estimated_ = true;
}

bool TraceHook::under_way() {
  const std::lock_guard lock(leaving_);
  return !done_ && !left_ && estimated_;
}

void TraceHook::leave(double patience_s) {
  write_part();
  wait_for_join(setting_.folder, group_.rank(), patience_s);
}

void TraceHook::write_part() {
  const std::lock_guard lock(leaving_);
  if (done_ || left_ || !estimated_) return;
  left_ = true;
  SpanRecorder::Contents contents = recorder_.take();
  RankTrace own;
  own.rank = group_.rank();
  own.host = setting_.host, own.role = setting_.role;
  own.spans = std::move(contents.spans), own.dropped = contents.dropped;
  own.clock_error_s = own_.error_s;
  own.move_times([&](double at_s) { return at_s - own_.offset_s; });
  try {
    write_trace_part(setting_.folder, own);
  } catch (const std::exception& error) {
    log_warning("the trace of steps {} is lost: {}", steps_text(setting_.steps), error.what());
  }
}

void TraceHook::leave_all(const std::string& why, const std::vector<int>& lost, double patience_s) {
  write_part();
  if (const std::lock_guard lock(leaving_); !left_) return;
  try {
    const std::string told = join_trace_parts(setting_.folder, {.steps = steps_text(setting_.steps),
                                                                .why = why,
                                                                .hosts = setting_.hosts,
                                                                .lost = lost,
                                                                .patience_s = patience_s});
    if (!told.empty()) log_warning("{}", told);
  } catch (const std::exception& error) {
    log_warning("the trace of steps {} is lost: {}", steps_text(setting_.steps), error.what());
  }
}

void TraceHook::step_end(const StepRecord& record) {
  if (done_ || !record.meets) return;
  reached_ = record.step;
  if (record.step > setting_.steps.last && all_over()) return gather();
  if (near_ || record.step + 1 < setting_.steps.first) return;
  near_ = true;
  if (record.step <= setting_.steps.last) estimate_before();
}

void TraceHook::run_end(bool) {
  if (!done_) gather();
}

bool TraceHook::all_over() { return !setting_.own_pace || group_.max(recorder_.over() ? 0 : 1) == 0; }

double TraceHook::aligned(int rank, double at_s) const {
  const auto r = static_cast<std::size_t>(rank);
  return at_s - offset_at(before_[r], after_[r], at_s);
}

double TraceHook::error_s(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  return std::max(before_[r].error_s, after_[r].error_s);
}

// Collective; of use on rank 0.
TraceHook::Window TraceHook::window(const std::vector<Span>& spans) {
  std::array<double, 3> own = {kNever_s, kNever_s, -kNever_s};
  for (const Span& span : spans) {
    if (recorder_.serves()) break;
    own[0] = std::min(own[0], span.begin_s);
    if (span.kind == SpanKind::step) own[1] = std::min(own[1], span.begin_s);
    if (span.kind == SpanKind::step || span.lane == SpanLane::device)  // a device ends its last step after the host
      own[2] = std::max(own[2], span.end_s);
  }
  const std::vector<double> all = group_.gather(own);
  Window window{.origin_s = kNever_s, .begin_s = kNever_s, .end_s = -kNever_s};
  for (int rank = 0; rank < group_.size() && group_.rank() == 0; ++rank) {
    const double* of = all.data() + static_cast<std::ptrdiff_t>(rank) * 3;
    if (of[1] == kNever_s) continue;
    window.origin_s = std::min(window.origin_s, aligned(rank, of[0]));
    window.begin_s = std::min(window.begin_s, aligned(rank, of[1]));
    window.end_s = std::max(window.end_s, aligned(rank, of[2]));
  }
  return window;
}

void TraceHook::gather() {
  done_ = true;
  SpanRecorder::Contents contents = recorder_.take();
  after_ = estimate_clock_offsets(engine_, setting_.channel, engine_.clock());
  const Window window = this->window(contents.spans);
  const bool first = group_.rank() == 0;
  double any = first && window.begin_s < kNever_s ? 1 : 0;
  group_.broadcast(&any, sizeof any, 0);
  if (any == 0) {
    log_info("trace     the run ended at step {}, before steps {}: nothing was traced", reached_,
             steps_text(setting_.steps));
    return;
  }
  RankTrace own;
  own.rank = group_.rank();
  own.host = setting_.host, own.role = setting_.role;
  own.spans = std::move(contents.spans), own.dropped = contents.dropped;

  std::optional<ChromeTrace> file;
  std::string failure;
  const auto attempt = [&](const std::function<void()>& body) {
    if (!first || !failure.empty()) return;
    try {
      body();
    } catch (const std::exception& error) {
      failure = error.what();
    }
  };
  attempt([&] { file.emplace(setting_.folder + "/trace.json", window.origin_s); });
  std::vector<TraceTimes> times;
  TraceFacts facts{.steps = steps_text(setting_.steps), .seconds = window.end_s - window.begin_s};
  collect_texts(engine_, setting_.channel, own.pack(), [&](int rank, const std::string& text) {
    attempt([&] {
      RankTrace trace = RankTrace::unpack(text);
      trace.move_times([&](double at_s) { return aligned(rank, at_s); });
      trace.keep(window.origin_s, window.end_s);
      trace.clock_error_s = error_s(rank);
      file->add(trace);
      facts.add(trace);
      times.push_back(report::times_of(trace));
    });
  });
  attempt([&] {
    nlohmann::ordered_json offsets = nlohmann::ordered_json::array(), errors = nlohmann::ordered_json::array();
    for (int rank = 0; rank < group_.size(); ++rank) {
      offsets.push_back(1e6 * after_[static_cast<std::size_t>(rank)].offset_s);
      errors.push_back(1e6 * error_s(rank));
    }
    const nlohmann::ordered_json other = {{"steps", facts.steps},           {"ranks", group_.size()},
                                          {"clock_offset_us", offsets},     {"clock_error_us", errors},
                                          {"dropped_spans", facts.dropped}, {"echelon", kVersion}};
    file->close(other.dump());
    write_file_whole(setting_.folder + "/trace.txt", trace_text(times, facts, true));
    std::istringstream lines(trace_text(times, facts, false));
    for (std::string line; std::getline(lines, line);) log_info("{}", line);
  });
  if (!failure.empty()) log_warning("the trace of steps {} is incomplete: {}", facts.steps, failure);
}

}  // namespace echelon::inline train
