// SPDX-License-Identifier: Apache-2.0
#include "report/trace/rank_trace.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <tuple>

#include "base/error.hpp"

namespace echelon::inline report {
namespace {

struct Packed {
  double begin_s, end_s;
  std::int64_t step, bytes;
  std::int32_t peer, index, name;  // name: -1 for the name of its kind
  SpanKind kind;
  SpanLane lane;
  std::uint8_t zeros[2];
};
static_assert(sizeof(Packed) == 48, "no padding");

template <class T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint64_t>(text.size()));
  out.append(text);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const auto size = get<std::uint64_t>();
    return std::string(take(size));
  }

 private:
  std::string_view take(std::size_t n) {
    if (n > left_.size()) throw DataError("the spans of a rank arrived truncated");
    const std::string_view part = left_.substr(0, n);
    left_.remove_prefix(n);
    return part;
  }
  std::string_view left_;
};

}  // namespace

std::string RankTrace::pack() const {
  std::map<std::string_view, std::int32_t> ids;
  for (const Span& span : spans)
    if (span.name != nullptr) ids.emplace(span.name, 0);
  std::int32_t next = 0;
  for (auto& [name, id] : ids) id = next++;
  std::string out;
  out.reserve(spans.size() * sizeof(Packed) + 1024);
  put(out, static_cast<std::int64_t>(rank));
  put_text(out, host);
  put_text(out, role);
  put(out, dropped);
  put(out, clock_error_s);
  put(out, static_cast<std::uint64_t>(ids.size()));
  for (const auto& [name, id] : ids) put_text(out, name);
  put(out, static_cast<std::uint64_t>(spans.size()));
  for (const Span& s : spans)
    put(out, Packed{s.begin_s,
                    s.end_s,
                    s.step,
                    s.bytes,
                    s.peer,
                    s.index,
                    s.name == nullptr ? -1 : ids.at(s.name),
                    s.kind,
                    s.lane,
                    {}});
  return out;
}

RankTrace RankTrace::unpack(const std::string& bytes) {
  Reader in(bytes);
  RankTrace trace;
  trace.rank = static_cast<int>(in.get<std::int64_t>());
  trace.host = in.text();
  trace.role = in.text();
  trace.dropped = in.get<std::uint64_t>();
  trace.clock_error_s = in.get<double>();
  for (auto n = in.get<std::uint64_t>(); n > 0; --n) trace.names_.push_back(in.text());
  for (auto n = in.get<std::uint64_t>(); n > 0; --n) {
    const auto p = in.get<Packed>();
    trace.spans.push_back({.begin_s = p.begin_s,
                           .end_s = p.end_s,
                           .name = p.name < 0 ? nullptr : trace.names_.at(static_cast<std::size_t>(p.name)).c_str(),
                           .step = p.step,
                           .bytes = p.bytes,
                           .peer = p.peer,
                           .index = p.index,
                           .kind = p.kind,
                           .lane = p.lane});
  }
  return trace;
}

void RankTrace::move_times(const std::function<double(double)>& moved) {
  for (Span& span : spans) {
    span.begin_s = moved(span.begin_s);
    span.end_s = moved(span.end_s);
  }
}

void RankTrace::keep(double begin_s, double end_s) {
  std::erase_if(spans, [&](const Span& span) { return span.end_s < begin_s || span.begin_s > end_s; });
  for (Span& span : spans) span.begin_s = std::max(span.begin_s, begin_s);
}

std::vector<Span> in_order(const std::vector<Span>& spans, SpanLane lane) {
  std::vector<Span> of_lane;
  for (const Span& span : spans)
    if (span.lane == lane) of_lane.push_back(span);
  std::stable_sort(of_lane.begin(), of_lane.end(), [](const Span& a, const Span& b) {
    return std::tuple(a.begin_s, -a.end_s, a.kind) < std::tuple(b.begin_s, -b.end_s, b.kind);
  });
  return of_lane;
}

std::vector<std::vector<Span>> on_lines(std::vector<Span> spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin_s < b.begin_s; });
  std::vector<std::vector<Span>> lines;
  for (const Span& span : spans) {
    const auto free = std::find_if(lines.begin(), lines.end(),
                                   [&](const std::vector<Span>& line) { return line.back().end_s <= span.begin_s; });
    if (free == lines.end())
      lines.push_back({span});
    else
      free->push_back(span);
  }
  return lines;
}

std::vector<Span> merged(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin_s < b.begin_s; });
  std::vector<Span> out;
  for (const Span& span : spans)
    if (out.empty() || span.begin_s > out.back().end_s)
      out.push_back({.begin_s = span.begin_s, .end_s = span.end_s});
    else
      out.back().end_s = std::max(out.back().end_s, span.end_s);
  return out;
}

double common_s(const Span& span, const std::vector<Span>& others) {
  double sum = 0;
  auto at = std::partition_point(others.begin(), others.end(),
                                 [&](const Span& other) { return other.end_s <= span.begin_s; });
  for (; at != others.end() && at->begin_s < span.end_s; ++at)
    sum += std::min(span.end_s, at->end_s) - std::max(span.begin_s, at->begin_s);
  return sum;
}

}  // namespace echelon::inline report
