// SPDX-License-Identifier: Apache-2.0
#include "base/peak_memory.hpp"

#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace echelon::inline base {
namespace {

enum class PeakOf : unsigned char { process, run, several_runs };
std::atomic<PeakOf> peak_of{PeakOf::process};
std::atomic<int> runs_begun{0};

constexpr double kUnknownPeak = std::numeric_limits<double>::quiet_NaN();

bool reset_peak(const char* clear_refs) {
  std::ofstream file(clear_refs);
  file << "5";  // proc(5): resets the peak resident set size to the current one
  file.close();
  return !file.fail();
}

// VmHWM of /proc/self/status; unknown if it is not shown.
double high_water_mb() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (double kib = 0; line.starts_with("VmHWM:") && std::istringstream(line.substr(6)) >> kib) return kib / 1024;
  return kUnknownPeak;
}

// Peak since the process was executed. getrusage, the last resort, may count an earlier program of the process.
double of_process_mb() {
  if (const double mb = high_water_mb(); mb >= 0) return mb;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // KiB to MiB
}

}  // namespace

void begin_peak_memory(const char* clear_refs) {
  malloc_trim(0);
  const bool first = runs_begun.fetch_add(1) == 0;
  peak_of = reset_peak(clear_refs) ? PeakOf::run : first ? PeakOf::process : PeakOf::several_runs;
}

double peak_memory_mb() {
  switch (peak_of.load()) {
    case PeakOf::process: return of_process_mb();
    case PeakOf::run: return high_water_mb();
    case PeakOf::several_runs: break;
  }
  return kUnknownPeak;
}

}  // namespace echelon::inline base
