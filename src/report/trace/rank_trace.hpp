// The spans of one rank (base/spans.hpp), as they travel to rank 0 and are laid out there.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/spans.hpp"

namespace echelon::inline report {

struct RankTrace {
  int rank = 0;
  std::string host, role;  // "worker", "server"
  std::vector<Span> spans;
  std::uint64_t dropped = 0;
  double clock_error_s = 0;  // of the times against rank 0's

  RankTrace() = default;
  RankTrace(RankTrace&&) = default;
  RankTrace& operator=(RankTrace&&) = default;

  // Bytes for a rank of the same build; unpack owns the names that its spans point to. DataError of what was cut off.
  std::string pack() const;
  static RankTrace unpack(const std::string& bytes);
  // Replaces every time by `moved` of it; must not decrease.
  void move_times(const std::function<double(double)>& moved);
  // Leaves the spans that touch [begin_s, end_s]; none begins before it.
  void keep(double begin_s, double end_s);

 private:
  std::deque<std::string> names_;
};

// The spans of one lane in the order of time, an outer one before those inside it.
std::vector<Span> in_order(const std::vector<Span>& spans, SpanLane lane);

// Spans that may overlap, on as few lines as possible of which each holds none that do: for each line its spans, in the
// order of time. Greedy by begin, which needs no more lines than are under way at once. O(n lines).
std::vector<std::vector<Span>> on_lines(std::vector<Span> spans);

// The times in which at least one of the spans is under way, one after another, in order; of each, times alone.
std::vector<Span> merged(std::vector<Span> spans);
// Seconds of a span in which one of `others` is; these lie one after another, in order.
double common_s(const Span& span, const std::vector<Span>& others);

}  // namespace echelon::inline report
