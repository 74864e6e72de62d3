#include "train/hooks/agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <map>

#include "base/checksum.hpp"
#include "train/agree.hpp"

namespace echelon {
namespace {

constexpr std::size_t kDigits = 16;  // of hex64
constexpr std::size_t kNamed = 3;    // parameters

// hex64 of every parameter, one after another.
std::string checksums_by_parameter(const Arenas& arenas) {
  std::string all;
  std::vector<std::byte> host;
  for (int i = 0; i < arenas.parameters().size(); ++i) {
    const Tensor weight = arenas.weight(i);
    host.resize(weight.bytes());
    arenas.device().to_host(host.data(), weight.data, host.size());
    all += hex64(checksum64(host.data(), host.size()));
  }
  return all;
}

// "conv1.weight", "conv1.weight, fc.bias and 4 more"
std::string differing(const ParameterSet& parameters, const std::string& a, const std::string& b) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters.all()) {
    const std::size_t at = kDigits * static_cast<std::size_t>(&parameter - parameters.all().data());
    if (a.compare(at, kDigits, b, at, kDigits) != 0) names.push_back(parameter.name);
  }
  const std::size_t more = names.size() > kNamed ? names.size() - kNamed : 0;
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

Split split_of(const std::vector<std::string>& checksums) {
  std::map<std::string, std::size_t> votes;
  for (const std::string& sum : checksums) ++votes[sum];
  Split split;
  const auto votes_for = [&](std::size_t rank) { return votes[checksums[rank]]; };
  for (std::size_t rank = 1; rank < checksums.size(); ++rank)
    if (votes_for(rank) > votes_for(static_cast<std::size_t>(split.common))) split.common = static_cast<int>(rank);
  const std::string& common = checksums[static_cast<std::size_t>(split.common)];
  for (std::size_t rank = 0; rank < checksums.size(); ++rank)
    if (checksums[rank] != common) split.odd.push_back(static_cast<int>(rank));
  split.majority = 2 * split.odd.size() < checksums.size();
  return split;
}

void AgreementHook::compare() {
  if (group_.size() == 1) return;
  strategy_.drain();
  const std::vector<std::string> checksums = group_.gather(hex64(arenas_.checksum()));
  if (!split_of(checksums).odd.empty()) refuse(checksums);
  agreed_ = step_;
}

void AgreementHook::refuse(const std::vector<std::string>& checksums) {
  const Split split = split_of(checksums);
  const std::vector<std::string> parts = group_.gather(checksums_by_parameter(arenas_));
  const auto odd = static_cast<std::size_t>(split.odd.front()), common = static_cast<std::size_t>(split.common);
  const std::string where = differing(arenas_.parameters(), parts[odd], parts[common]);
  const std::string when = agreed_ < 0 ? "" : fmt::format("; they were equal after step {}", agreed_);
  const std::string who = fmt::format("rank{} {}", split.odd.size() == 1 ? "" : "s", fmt::join(split.odd, ", "));
  const std::string sums =
      fmt::format("checksum {} on rank {}, {} on rank {}", checksums[odd], odd, checksums[common], common);
  throw CommonError(
      kExitNumeric,
      split.majority
          ? fmt::format("the replicas no longer agree: the weights of {} differ from those of most after step {}, in "
                        "{} ({}){}",
                        who, step_, where, sums, when)
          : fmt::format("the replicas no longer agree: the weights of {} differ from those of rank {} after step {}, "
                        "in {}, and no majority says which are right ({}){}",
                        who, common, step_, where, sums, when));
}

}  // namespace echelon
