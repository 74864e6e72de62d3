// SPDX-License-Identifier: Apache-2.0
// The spans of one rank (base/spans.hpp), in the form in which they are sent to rank 0 and laid out there.
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
  double clock_error_s = 0;  // error of its times against rank 0's clock

  RankTrace() = default;
  RankTrace(RankTrace&&) = default;
  RankTrace& operator=(RankTrace&&) = default;

  // Serialises for a rank of the same build. `unpack` owns the names that its spans point to; it throws DataError for
  // truncated bytes.
  std::string pack() const;
  static RankTrace unpack(const std::string& bytes);
  // Replaces every time t by moved(t); `moved` must not decrease.
  void move_times(const std::function<double(double)>& moved);
  // Keeps the spans that touch [begin_s, end_s] and cuts their begin to begin_s.
  void keep(double begin_s, double end_s);

 private:
  std::deque<std::string> names_;
};

// Returns the spans of one lane in the order of time, each outer span before those inside it.
std::vector<Span> in_order(const std::vector<Span>& spans, SpanLane lane);

// Distributes spans that may overlap over as few lines as possible, such that no line has overlapping spans. Returns
// the spans of each line in the order of time. Greedy by begin; needs no more lines than there are simultaneous spans.
// O(n lines).
std::vector<std::vector<Span>> on_lines(std::vector<Span> spans);

// Returns the intervals in which at least one of the spans is under way, disjoint and in order; only times are filled.
std::vector<Span> merged(std::vector<Span> spans);
// Returns the seconds that a span shares with `others`, which must be disjoint and in order.
double common_s(const Span& span, const std::vector<Span>& others);

}  // namespace echelon::inline report
