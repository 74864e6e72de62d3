// Labels of a set, counted: classes that no sample has, and labels and names that are more likely something else than
// classes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline data {

class LabelCounts {
 public:
  void add(std::int32_t label);  // 0 or more

  std::int64_t samples() const { return samples_; }
  std::int64_t kinds() const { return kinds_; }  // different labels below kMostClasses
  std::int64_t greatest() const { return greatest_; }
  bool has(std::int64_t label) const;

 private:
  std::vector<bool> seen_;
  std::int64_t samples_ = 0, kinds_ = 0, greatest_ = -1;
};

// The classes of 0 to `classes` - 1 that no sample has, with the cure where labels begin at 1; "" where there is none.
// `names`: by class, or empty.
std::string empty_classes_text(const LabelCounts& counts, std::int64_t classes, const std::vector<std::string>& names);

// Why labels are more likely the numbers of samples, or quantities, than classes: each comes once, or there are more
// classes than samples. "" where they are not, and of fewer than 20 samples.
std::string unlike_classes(const LabelCounts& counts, std::int64_t classes);

// DataError with file and record where a label is no class.
void require_class(const std::string& path, std::int64_t record, std::int32_t label, std::int64_t classes);

// Why these names of classes are more likely those of the parts of a data set (train, val, test); "" where they are
// not. One class of such a name among others is a class.
std::string like_parts_of_a_set(const std::vector<std::string>& names);

}  // namespace echelon::inline data
