// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <map>
#include <sstream>

#include "base/check.hpp"
#include "base/checksum.hpp"
#include "job/agree.hpp"

namespace echelon::inline train {
namespace {

constexpr std::size_t kNamed = 3;  // parameters

// "<name> <hex64>" of every parameter, a line each.
std::string checksums_by_parameter(const Arenas& arenas) {
  std::string all;
  std::vector<std::byte> host;
  for (const Parameter& parameter : arenas.parameters().with_frozen()) {
    const Tensor weight = arenas.weight(arenas.parameters().find(parameter.name));
    host.resize(weight.bytes());
    arenas.device().to_host(host.data(), weight.data, host.size());
    all += fmt::format("{} {}\n", parameter.name, hex64(checksum64(host.data(), host.size())));
  }
  return all;
}

// "conv1.weight", "conv1.weight, fc.bias and 4 more"
std::string differing(const std::string& a, const std::string& b) {
  std::vector<std::string> names;
  std::istringstream lines_of_a(a), lines_of_b(b);
  for (std::string one, other; std::getline(lines_of_a, one) && std::getline(lines_of_b, other);)
    if (one != other) names.push_back(one.substr(0, one.find(' ')));
  const std::size_t more = names.size() > kNamed ? names.size() - kNamed : 0;
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

void add_moments(std::uint64_t checksum, std::span<double, kMoments> sums) {
  for (std::size_t i = 0; i < kMoments; i += 2) {
    const auto byte = static_cast<double>(checksum >> (4 * i) & 0xff);
    sums[i] += byte;
    sums[i + 1] += byte * byte;
  }
}

// The mean of squares is the square of the mean only for equal values (Cauchy, Schwarz). All numbers are whole, and
// their products below 2^62.
bool alike(std::span<const double, kMoments> sums, int ranks) {
  for (std::size_t i = 0; i < kMoments; i += 2) {
    const auto values = static_cast<std::int64_t>(sums[i]), squares = static_cast<std::int64_t>(sums[i + 1]);
    if (values * values != ranks * squares) return false;
  }
  return true;
}

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
  if (mesh_.replicas() * mesh_.space() == 1 || !strategy_.progress().equal_weights) return;
  strategy_.drain();
  if (all_alike()) {
    agreed_ = step_;
    return;
  }
  const std::vector<std::string> all = group_.gather(hex64(arenas_.checksum()));
  for (int part = 0; part < mesh_.parts(); ++part) {
    const std::vector<int> ranks = mesh_.holders(part);
    std::vector<std::string> checksums;
    for (const int rank : ranks) checksums.push_back(all[static_cast<std::size_t>(rank)]);
    if (!split_of(checksums).odd.empty()) refuse(ranks, checksums);
  }
  ECHELON_CHECK(false, "sums of checksums differ after step {}, and no checksum does", step_);
}

// Servers hold no part.
bool AgreementHook::all_alike() {
  std::vector<double> sums(static_cast<std::size_t>(mesh_.parts()) * kMoments);
  const auto of = [&](int part) {
    return std::span<double, kMoments>(&sums[static_cast<std::size_t>(part) * kMoments], kMoments);
  };
  if (group_.rank() < mesh_.ranks()) add_moments(arenas_.checksum(), of(mesh_.part(mesh_.coord(group_.rank()))));
  group_.sum(sums);
  for (int part = 0; part < mesh_.parts(); ++part)
    if (!alike(of(part), mesh_.replicas() * mesh_.space())) return false;
  return true;
}

void AgreementHook::refuse(const std::vector<int>& ranks, const std::vector<std::string>& checksums) {
  const Split split = split_of(checksums);
  const std::vector<std::string> parts = group_.gather(checksums_by_parameter(arenas_));
  const auto rank_at = [&](int index) { return ranks[static_cast<std::size_t>(index)]; };
  std::vector<int> odd_ranks;
  for (int index : split.odd) odd_ranks.push_back(rank_at(index));
  const int odd = odd_ranks.front(), common = rank_at(split.common);
  const std::string where = differing(parts[static_cast<std::size_t>(odd)], parts[static_cast<std::size_t>(common)]);
  const std::string when = agreed_ < 0 ? "" : fmt::format("; they were equal after step {}", agreed_);
  const std::string who = fmt::format("rank{} {}", odd_ranks.size() == 1 ? "" : "s", fmt::join(odd_ranks, ", "));
  const std::string sums =
      fmt::format("checksum {} on rank {}, {} on rank {}", checksums[static_cast<std::size_t>(split.odd.front())], odd,
                  checksums[static_cast<std::size_t>(split.common)], common);
  throw CommonError(
      kExitNumeric,
      split.majority
          ? fmt::format("the replicas no longer agree: the weights of {} differ from those of most ranks after step "
                        "{}, in {} ({}){}",
                        who, step_, where, sums, when)
          : fmt::format("the replicas no longer agree: the weights of {} differ from those of rank {} after step {}, "
                        "in {}, and no majority shows which are right ({}){}",
                        who, common, step_, where, sums, when));
}

}  // namespace echelon::inline train
