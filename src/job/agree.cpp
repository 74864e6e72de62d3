// SPDX-License-Identifier: Apache-2.0
#include "job/agree.hpp"

#include <fmt/format.h>

#include "base/checksum.hpp"
#include "base/failure.hpp"

namespace echelon::inline job {

void all_or_none(Group& group, const std::function<void()>& body) {
  std::string trouble;  // "<code> <text>"
  try {
    body();
  } catch (const CommonError&) {
    throw;
  } catch (const std::exception& error) {
    const Failure failure = failure_of(error);
    trouble = fmt::format("{} {}", static_cast<int>(failure.code), failure.text);
  }
  double troubles = trouble.empty() ? 0 : 1;
  group.sum({&troubles, 1});
  if (troubles == 0) return;
  const std::vector<std::string> all = group.gather(trouble);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const auto space = all[rank].find(' ');
    const std::string text = all[rank].substr(space + 1);
    throw CommonError(static_cast<ExitCode>(std::stoi(all[rank])),
                      rank == 0 ? text : fmt::format("rank {}: {}", rank, text));
  }
}

void require_same(Group& group, const std::string& what, const std::string& text, const Differences& differences) {
  const std::string compared = differences ? hex64(checksum64(text)) : text;
  double others = group.of_first(compared) == compared ? 0 : 1;
  group.sum({&others, 1});
  if (others == 0) return;
  const std::vector<std::string> all = group.gather(text);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw CommonError(kExitEnvironment, fmt::format("the ranks differ in their {}: {}", what,
                                                      differences ? differences(all[0], all[rank], rank)
                                                                  : fmt::format("rank 0 has {}, rank {} has {}", all[0],
                                                                                rank, all[rank])));
}

}  // namespace echelon::inline job
