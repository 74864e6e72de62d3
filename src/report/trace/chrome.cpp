// SPDX-License-Identifier: Apache-2.0
#include "report/trace/chrome.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/error.hpp"

namespace echelon::inline report {
namespace {

constexpr int kLinesOfALane = 1000;  // thread ids per lane

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }
std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

const char* lane_name(SpanLane lane) {
  switch (lane) {
    case SpanLane::compute: return "compute";
    case SpanLane::device: return "device";
    case SpanLane::engine: return "engine";
    case SpanLane::exchange: return "exchange";
    case SpanLane::sends: return "sends";
    case SpanLane::receives: return "receives";
    case SpanLane::helpers: return "helpers";
  }
  return "";
}

std::string span_name(const Span& span) {
  if (span.name != nullptr) return span.name;
  if (span.kind == SpanKind::step) return fmt::format("step {}", span.step);
  if (span.kind == SpanKind::exchange && span.index >= 0) return fmt::format("bucket {}", span.index);
  if (span.kind == SpanKind::send) return fmt::format("to {}", span.peer);
  if (span.kind == SpanKind::receive) return fmt::format("from {}", span.peer);
  return name_of(span.kind);
}

}  // namespace

ChromeTrace::ChromeTrace(const std::string& path, double origin_s)
    : path_(path),
      temporary_(fmt::format("{}.tmp-{}", path, ::getpid())),
      origin_s_(origin_s),
      file_(::fdopen(create_file(temporary_), "w")) {
  if (file_ == nullptr)
    throw EnvironmentError(fmt::format("{}: cannot be written: {}", temporary_, std::strerror(errno)));
  write("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
}

ChromeTrace::~ChromeTrace() {
  if (file_ == nullptr) return;
  (void)std::fclose(file_);
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void ChromeTrace::write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size())
    throw EnvironmentError(fmt::format("{}: cannot be written: {}", temporary_, std::strerror(errno)));
}

void ChromeTrace::event(const std::string& text) {
  write((first_ ? "" : ",\n") + text);
  first_ = false;
}

void ChromeTrace::thread(int rank, int thread, const std::string& name) {
  event(fmt::format(R"({{"ph": "M", "pid": {}, "tid": {}, "name": "thread_name", "args": {{"name": {}}}}})", rank,
                    thread, quoted(name)));
  event(fmt::format(R"({{"ph": "M", "pid": {}, "tid": {}, "name": "thread_sort_index", "args": {{"sort_index": {}}}}})",
                    rank, thread, thread));
}

void ChromeTrace::span(const RankTrace& rank, int thread, const Span& span, double exposed_s) {
  const std::int64_t begin = nanoseconds(span.begin_s - origin_s_), end = nanoseconds(span.end_s - origin_s_);
  std::string args = fmt::format("\"step\": {}", span.step);
  if (span.bytes >= 0) args += fmt::format(", \"bytes\": {}", span.bytes);
  if (span.peer >= 0) args += fmt::format(", \"peer\": {}", span.peer);
  if (span.index >= 0) args += fmt::format(", \"bucket\": {}", span.index);
  if (span.kind == SpanKind::exchange) args += fmt::format(", \"exposed_us\": {:.3f}", exposed_s * 1e6);
  event(fmt::format(
      R"({{"ph": "X", "pid": {}, "tid": {}, "ts": {}, "dur": {}, "cat": "{}", "name": {}, "args": {{{}}}}})", rank.rank,
      thread, microseconds(begin), microseconds(end - begin), name_of(span.kind), quoted(span_name(span)), args));
}

void ChromeTrace::add(const RankTrace& rank) {
  const auto about = [&](const char* what, const std::string& args) {
    event(fmt::format(R"({{"ph": "M", "pid": {}, "name": "{}", "args": {{{}}}}})", rank.rank, what, args));
  };
  about("process_name", "\"name\": " + quoted(fmt::format("rank {}, {} on {}", rank.rank, rank.role, rank.host)));
  about("process_sort_index", fmt::format("\"sort_index\": {}", rank.rank));
  about("process_labels", fmt::format("\"labels\": \"clock within {:.1f} us\"", rank.clock_error_s * 1e6));
  std::vector<Span> waits;
  for (const Span& span : in_order(rank.spans, SpanLane::compute))
    if (span.kind == SpanKind::exchange_wait) waits.push_back(span);
  for (const SpanLane lane : {SpanLane::compute, SpanLane::device, SpanLane::engine, SpanLane::helpers,
                              SpanLane::exchange, SpanLane::sends, SpanLane::receives}) {
    std::vector<std::vector<Span>> lines{in_order(rank.spans, lane)};
    if (lane >= SpanLane::exchange) lines = on_lines(std::move(lines.front()));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].empty()) continue;
      const int id = static_cast<int>(lane) * kLinesOfALane + static_cast<int>(i);
      thread(rank.rank, id, i == 0 ? lane_name(lane) : fmt::format("{} {}", lane_name(lane), i + 1));
      for (const Span& each : lines[i])
        span(rank, id, each, each.kind == SpanKind::exchange ? common_s(each, waits) : 0);
    }
  }
}

void ChromeTrace::close(const std::string& facts) {
  write("\n],\n\"otherData\": " + facts + "}\n");
  std::FILE* const file = std::exchange(file_, nullptr);
  if (std::fclose(file) != 0)
    throw EnvironmentError(fmt::format("{}: cannot be written: {}", temporary_, std::strerror(errno)));
  publish_file(temporary_, path_);
}

}  // namespace echelon::inline report
