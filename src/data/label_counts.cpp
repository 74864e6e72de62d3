// SPDX-License-Identifier: Apache-2.0
#include "data/label_counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "base/error.hpp"
#include "base/text.hpp"
#include "data/format.hpp"

namespace echelon::inline data {
namespace {

// Whether the name is that of a part; "train", "Train2017" and "train_images" count as the same word.
bool names_part(const std::string& name) {
  constexpr std::array kWords = {"train", "training", "val",     "valid",   "validation", "dev",
                                 "eval",  "test",     "testing", "holdout", "heldout"};
  constexpr std::array kBehind = {"", "set", "data", "images", "split"};
  std::string letters;
  for (const unsigned char c : name)
    if (std::isalpha(c)) letters += static_cast<char>(std::tolower(c));
  return std::any_of(kWords.begin(), kWords.end(), [&](const std::string& word) {
    return std::any_of(kBehind.begin(), kBehind.end(), [&](const char* behind) { return letters == word + behind; });
  });
}

}  // namespace

void LabelCounts::add(std::int32_t label) {
  ++samples_;
  greatest_ = std::max<std::int64_t>(greatest_, label);
  if (label >= sample_format::kMostClasses) return;
  const auto at = static_cast<std::size_t>(label);
  if (at >= seen_.size()) seen_.resize(at + 1);
  if (!seen_[at]) ++kinds_;
  seen_[at] = true;
}

bool LabelCounts::has(std::int64_t label) const {
  return label >= 0 && label < std::ssize(seen_) && seen_[static_cast<std::size_t>(label)];
}

std::string empty_classes_text(const LabelCounts& counts, std::int64_t classes, const std::vector<std::string>& names) {
  constexpr std::int64_t kShown = 8;
  std::vector<std::string> empty;
  std::int64_t number = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    if (counts.has(c)) continue;
    if (number++ >= kShown) continue;
    const bool named = c < std::ssize(names);
    empty.push_back(named ? fmt::format("{} ({})", c, names[static_cast<std::size_t>(c)]) : fmt::format("{}", c));
  }
  if (number == 0) return {};
  if (number == 1 && classes > 1 && names.empty() && !counts.has(0))
    return fmt::format(
        "no sample has class 0, but all {} others have samples: labels that are numbered from 1 give the model an "
        "output that is never right; subtract 1 from them, unless samples of class 0 will be added",
        classes - 1);
  return fmt::format("{} of {} classes {} no sample: {}{}", count_text(number), count_text(classes),
                     number == 1 ? "has" : "have", fmt::join(empty, ", "),
                     number > kShown ? fmt::format(" and {} more", count_text(number - kShown)) : "");
}

std::string unlike_classes(const LabelCounts& counts, std::int64_t classes) {
  constexpr std::int64_t kFewest = 20;
  if (counts.samples() < kFewest) return {};
  if (counts.kinds() < counts.samples() && classes <= counts.samples()) return {};
  return fmt::format(
      "{} samples have {} different labels, up to {}: they look like sample numbers or quantities, not classes",
      count_text(counts.samples()),
      counts.greatest() < sample_format::kMostClasses ? count_text(counts.kinds()) : "many",
      count_text(counts.greatest()));
}

void require_class(const std::string& path, std::int64_t record, std::int32_t label, std::int64_t classes) {
  if (label < 0 || label >= classes)
    throw DataError(fmt::format("{}: record {} has label {}{}, must be 0 to {} ({} classes)", path, record, label,
                                label == std::numeric_limits<std::int32_t>::max() ? " or more" : "", classes - 1,
                                classes));
}

std::string like_parts_of_a_set(const std::vector<std::string>& names) {
  const auto parts = std::count_if(names.begin(), names.end(), names_part);
  if (parts == 0 || (parts == 1 && names.size() > 1)) return {};
  constexpr std::size_t kShown = 6;
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
  return fmt::format("the classes would be {}{}, which look like the parts of a data set, not classes",
                     fmt::join(shown, ", "), names.size() > kShown ? ", .." : "");
}

}  // namespace echelon::inline data
