// SPDX-License-Identifier: Apache-2.0
// Counts the labels of a set. Detects classes without a sample, and labels and names that are more likely something
// else than classes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline data {

class LabelCounts {
 public:
  void add(std::int32_t label);  // 0 or more

  std::int64_t samples() const { return samples_; }
  std::int64_t kinds() const { return kinds_; }  // number of different labels below kMostClasses
  std::int64_t greatest() const { return greatest_; }
  bool has(std::int64_t label) const;

 private:
  std::vector<bool> seen_;
  std::int64_t samples_ = 0, kinds_ = 0, greatest_ = -1;
};

// Names the classes of 0 to `classes` - 1 that have no sample, with advice if labels begin at 1; "" if there are none.
// `names`: by class, or empty.
std::string empty_classes_text(const LabelCounts& counts, std::int64_t classes, const std::vector<std::string>& names);

// Returns why labels are more likely sample numbers or quantities than classes: each occurs once, or there are more
// classes than samples. "" if they look like classes, and for fewer than 20 samples.
std::string unlike_classes(const LabelCounts& counts, std::int64_t classes);

// Throws DataError with file and record if a label is not a class.
void require_class(const std::string& path, std::int64_t record, std::int32_t label, std::int64_t classes);

// Returns why these class names are more likely the parts of a data set (train, val, test); "" if they are not. A
// single such name among others counts as a class.
std::string like_parts_of_a_set(const std::vector<std::string>& names);

}  // namespace echelon::inline data
