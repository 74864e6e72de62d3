#include "train/hooks/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "train/agree.hpp"

namespace echelon {

int odd_one_out(const std::vector<std::string>& checksums) {
  std::map<std::string, int> votes;
  for (const std::string& sum : checksums) ++votes[sum];
  if (votes.size() < 2) return -1;
  // Of equally common ones, rank 0's is taken for right.
  int most = 0;
  std::string common;
  for (const std::string& sum : checksums)
    if (votes[sum] > most) {
      most = votes[sum];
      common = sum;
    }
  const auto odd = std::find_if(checksums.begin(), checksums.end(), [&](const auto& sum) { return sum != common; });
  return static_cast<int>(odd - checksums.begin());
}

void AgreementHook::compare() {
  if (group_.size() == 1) return;
  strategy_.drain();
  const std::vector<std::string> sums = group_.gather(hex64(arenas_.checksum()));
  const int odd = odd_one_out(sums);
  if (odd < 0) return;
  const std::size_t other = odd == 0 ? 1 : 0;
  throw CommonError(kExitNumeric,
                    fmt::format("the replicas no longer agree: the weights of rank {} differ after step {} "
                                "(checksum {}, rank {} has {})",
                                odd, step_, sums[static_cast<std::size_t>(odd)], other, sums[other]));
}

}  // namespace echelon
