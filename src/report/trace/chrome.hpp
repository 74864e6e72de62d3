// Spans as a file that Perfetto (ui.perfetto.dev) and chrome://tracing open: the JSON object form of the Trace Event
// Format (Google, "Trace Event Format", 2016). A process is a rank, a thread one of its lanes:
//
//   compute       the compute thread: steps, in them data, forward and backward with their layers, waits, the
//   optimiser,
//                 meetings, hooks
//   engine        what the thread that drives messages computes: codecs, sums, a server's updates
//   exchange      a bucket from its first message to its last, with bytes and what of it was exposed
//   sends, receives   messages under way, by peer
//
// Spans of one thread lie one after another or one within another; lanes whose spans overlap take several threads
// ("sends 2"). Times are microseconds since `origin_s`, with three decimals.
#pragma once

#include <cstdio>
#include <string>

#include "report/trace/rank_trace.hpp"

namespace echelon::inline report {

class ChromeTrace {
 public:
  // Writes beside `path` until `close`. EnvironmentError where that cannot be.
  ChromeTrace(const std::string& path, double origin_s);
  ~ChromeTrace();
  ChromeTrace(const ChromeTrace&) = delete;

  void add(const RankTrace& rank);
  // The file appears. `facts`, JSON, becomes "otherData".
  void close(const std::string& facts);

 private:
  void write(const std::string& text);
  void event(const std::string& text);
  void thread(int rank, int thread, const std::string& name);
  void span(const RankTrace& rank, int thread, const Span& span, double exposed_s);

  std::string path_, temporary_;
  double origin_s_;
  std::FILE* file_;
  bool first_ = true;
};

}  // namespace echelon::inline report
