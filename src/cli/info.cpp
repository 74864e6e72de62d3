// echelon info: what this build is and what this machine offers.
#include <sched.h>

#include <cstdio>

#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/options.hpp"

namespace echelon::cli {
namespace {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

int run_info(const InfoOptions&) {
  Table table({"what", "value"});
  table.row({"version", kVersion});
  table.row({"commit", commit()});
  table.row({"cores", std::to_string(usable_cores())});
  std::fputs(table.text().c_str(), stdout);
  return 0;
}

}  // namespace echelon::cli
