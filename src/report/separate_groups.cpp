// SPDX-License-Identifier: Apache-2.0
#include "report/separate_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text.hpp"
#include "config/differences.hpp"

namespace echelon::inline report {
namespace {

constexpr std::size_t kKeysNamed = 6, kSentences = 10;

struct RunGroup {
  const RunRecord* first;
  std::size_t runs = 0;
  std::string text() const { return fmt::format("{} of '{}' ({})", counted(runs, "run"), first->name, first->folder); }
};

std::vector<KeyDifference> differences(const RunRecord& left, const RunRecord& right) {
  std::vector<KeyDifference> keys;
  if (left.config && right.config) keys = differing_keys(*left.config, *right.config, false);
  std::erase_if(keys, [](const KeyDifference& key) {
    constexpr std::array varied = {"seed", "batch.", "exchange.", "parallel."};
    return std::any_of(varied.begin(), varied.end(), [&](const char* part) { return key.key.starts_with(part); });
  });
  const auto place = [](const RunRecord& run) { return run.device + (run.computes_at_pace() ? ", at a pace" : ""); };
  if (place(left) != place(right)) keys.push_back({"device", place(left), place(right)});
  return keys;
}

}  // namespace

std::vector<std::string> separation_warnings(const std::vector<RunRecord>& runs) {
  std::vector<RunGroup> groups;
  std::map<std::string, std::size_t> index;
  for (const RunRecord& run : runs) {
    const auto [at, fresh] = index.emplace(run.group, groups.size());
    if (fresh) groups.push_back({&run});
    ++groups[at->second].runs;
  }
  std::vector<std::string> sentences;
  std::size_t left_out = 0;
  for (std::size_t g = 1; g < groups.size(); ++g) {
    std::size_t nearest = 0;
    std::vector<KeyDifference> keys = differences(*groups[0].first, *groups[g].first);
    for (std::size_t other = 1; other < g; ++other)
      if (std::vector<KeyDifference> found = differences(*groups[other].first, *groups[g].first);
          found.size() < keys.size())
        nearest = other, keys = std::move(found);
    if (keys.empty()) continue;
    std::string text;
    for (std::size_t i = 0; i < std::min(keys.size(), kKeysNamed); ++i)
      text += fmt::format("{}{} ({}; {})", i > 0 ? ", " : "", keys[i].key, keys[i].left, keys[i].right);
    if (keys.size() > kKeysNamed) text += fmt::format(" and {}", counted(keys.size() - kKeysNamed, "more key"));
    if (sentences.size() == kSentences) {
      ++left_out;
      continue;
    }
    sentences.push_back(
        fmt::format("{} and {} are not compared: they differ in {}", groups[nearest].text(), groups[g].text(), text));
  }
  if (left_out > 0)
    sentences.push_back(
        fmt::format("{} of runs are not compared with any of these either", counted(left_out, "group")));
  return sentences;
}

}  // namespace echelon::inline report
