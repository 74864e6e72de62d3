// SPDX-License-Identifier: Apache-2.0
#include "data/passed_over.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/lower_case.hpp"
#include "base/text.hpp"

namespace echelon::inline data {

void pass_over(std::vector<PassedOver>& all, const std::string& what, const std::string& path, std::int64_t count) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const PassedOver& entry) { return entry.what == what; });
  if (found == all.end()) {
    all.push_back({what, count, path});
    return;
  }
  found->count += count;
  found->first = std::min(found->first, path);  // independent of the order in which a folder is listed
}

void pass_over(std::vector<PassedOver>& all, const std::vector<PassedOver>& more) {
  for (const PassedOver& entry : more) pass_over(all, entry.what, entry.first, entry.count);
}

std::string kind_of_file(const std::string& name) {
  constexpr std::size_t kLongest = 12;                                  // a longer ending is part of the name
  const std::size_t base = name.rfind('/') + 1, dot = name.rfind('.');  // npos + 1 is 0
  if (name[base] == '.') return "hidden file";
  if (dot == std::string::npos || dot < base || dot + 1 == name.size() || name.size() - dot > kLongest)
    return "file without an ending";
  return lower_case(name.substr(dot)) + " file";
}

std::string passed_over_text(std::vector<PassedOver> all) {
  constexpr std::size_t kShown = 8;
  std::stable_sort(all.begin(), all.end(), [](const PassedOver& a, const PassedOver& b) {
    return a.count != b.count ? a.count > b.count : a.what < b.what;
  });
  const auto named = [](const PassedOver& entry) {
    std::string what = entry.what;
    if (entry.count != 1) {  // plural: "images beside the folders of classes", "files without an ending"
      const std::size_t noun = std::min(what.find(" beside "), what.find(" without "));
      what.insert(std::min(noun, what.size()), "s");
    }
    return fmt::format("{} {}{} {}", count_text(entry.count), what, entry.count == 1 ? "," : ", the first",
                       entry.first);
  };
  std::string text;
  std::int64_t more = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i < kShown)
      text += (i > 0 ? "; " : "") + named(all[i]);
    else
      more += all[i].count;
  }
  return more > 0 ? fmt::format("{}; and {} more", text, count_text(more)) : text;
}

}  // namespace echelon::inline data
