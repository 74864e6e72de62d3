// SPDX-License-Identifier: Apache-2.0
// Shared by the readers of [study]: reads values and throws errors with their place in the file.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "config/keys.hpp"
#include "study/study.hpp"

namespace echelon::inline study {

class SectionReader {
 public:
  explicit SectionReader(const std::string& file) : origin_{file, true} {}

  const Origin& origin() const { return origin_; }
  [[noreturn]] void refuse(int line, int column, const std::string& why) const {
    throw ConfigError(fmt::format("{}: {}", origin_.at(line, column), why));
  }
  [[noreturn]] void refuse(const TomlEntry& entry, const std::string& why) const {
    refuse(entry.line, entry.column, why);
  }
  KeyValue value(const TomlEntry& entry, const KeyValue& like, const KeyLimits& limits,
                 const std::string& section = "study.") const {
    return read_value(entry.node, like, limits, section + entry.key, origin_);
  }
  std::int64_t whole(const TomlEntry& entry, double low, double high) const {
    return std::get<std::int64_t>(value(entry, std::int64_t{}, {low, high}));
  }
  std::size_t word(const TomlEntry& entry, const std::vector<std::string>& words) const {
    const auto text = std::get<std::string>(value(entry, std::string(), {.low = 1, .high = 0, .words = words}));
    return static_cast<std::size_t>(std::find(words.begin(), words.end(), text) - words.begin());
  }
  std::string text(const TomlEntry& entry) const {
    return std::get<std::string>(value(entry, std::string(), {.low = 1, .high = 0, .filled = true}));
  }
  std::vector<std::string> texts(const TomlEntry& entry) const {
    return std::get<std::vector<std::string>>(value(entry, std::vector<std::string>(), {.low = 1, .high = 0}));
  }
  // The entries of [study.axes] or [study.ranges].
  const std::vector<TomlEntry>& entries_of(const TomlEntry& section, std::string_view like) const {
    if (section.node.kind != TomlKind::table)
      refuse(section, fmt::format("study.{0} is a section: write [study.{0}], and \"section.key\" = {1} below",
                                  section.key, like));
    return section.node.entries;
  }

 private:
  Origin origin_;
};

// Read the settings in which the cells of a study differ (read_settings.cpp).
void read_axes(const SectionReader& in, const TomlEntry& section, StudyPlan& study);
void read_ranges(const SectionReader& in, const TomlEntry& section, StudyPlan& study);
void read_variants(const SectionReader& in, const TomlEntry& section, StudyPlan& study);
void read_environments(const SectionReader& in, const TomlEntry& section, StudyPlan& study);

}  // namespace echelon::inline study
