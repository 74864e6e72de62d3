// SPDX-License-Identifier: Apache-2.0
#include "verify/check.hpp"

#include <algorithm>

namespace echelon::verify {

bool VerifyContext::one_host() const {
  return std::all_of(hosts.begin(), hosts.end(), [&](const std::string& host) { return host == hosts.front(); });
}

void needs(bool possible, const std::string& reason) {
  if (!possible) throw Skipped(reason);
}

std::vector<VerifyCheck> all_checks(bool quick) {
  std::vector<VerifyCheck> all;
  for (const auto& kind : {message_checks, replica_checks, split_checks, device_checks, file_checks, process_checks})
    for (VerifyCheck& check : kind())
      if (!quick || check.in_quick) all.push_back(std::move(check));
  return all;
}

}  // namespace echelon::verify
