// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"

#include "base/error.hpp"

namespace echelon::inline base {
namespace {
thread_local int rank_of_thread = -1;
}

void set_thread_rank(int rank) { rank_of_thread = rank; }
int thread_rank() { return rank_of_thread; }

void check_failed(const char* file, int line, std::string_view condition, const std::string& operands,
                  const std::string& hint) {
  std::string where = file;
  if (const auto at = where.rfind("src/"); at != std::string::npos) where.erase(0, at);
  std::string text = fmt::format("{}:{}: check failed: {}", where, line, condition);
  if (!operands.empty()) text += fmt::format(" ({})", operands);
  if (rank_of_thread >= 0) text += fmt::format(" on rank {}", rank_of_thread);
  if (!hint.empty()) text += ": " + hint;
  throw Error(kExitInternal, text);
}

}  // namespace echelon::inline base
