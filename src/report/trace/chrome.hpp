// SPDX-License-Identifier: Apache-2.0
// Writes spans as a file that Perfetto (ui.perfetto.dev) and chrome://tracing open: the JSON object form of the Trace
// Event Format (Google, "Trace Event Format", 2016). A process stands for a rank, a thread for one of its lanes:
//
//   compute       the compute thread: steps, and in them data, forward and backward with their layers, waits, the
//                 optimiser, meetings, hooks
//   device        the device's steps by its own clock, if it runs behind the host
//   engine        computation on the thread that drives messages: codecs, sums, updates of a server
//   helpers       computation of collectives on helper threads
//   exchange      a bucket from its first message to its last, with its bytes and its exposed time
//   sends, receives   messages in flight, by peer
//
// Spans of one thread follow one another or are nested. Lanes whose spans overlap take several threads ("sends 2").
// Times are microseconds since `origin_s`, with three decimals.
#pragma once

#include <cstdio>
#include <string>

#include "report/trace/rank_trace.hpp"

namespace echelon::inline report {

class ChromeTrace {
 public:
  // Writes to a temporary file beside `path` until `close`. Throws EnvironmentError if it cannot be written.
  ChromeTrace(const std::string& path, double origin_s);
  ~ChromeTrace();
  ChromeTrace(const ChromeTrace&) = delete;

  void add(const RankTrace& rank);
  // Renames the file to `path`. `facts`, JSON, becomes "otherData".
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
