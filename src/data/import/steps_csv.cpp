// SPDX-License-Identifier: Apache-2.0
// Sequences as a table with one time step per line:
//
//   sequence,label,x,y     a heading (csv_table.hpp)
//   walk-1,run,0.3,1.2     consecutive lines with the same first cell are one sequence
//   walk-1,run,0.4,1.1
//
// The label is that of the sequence, the same in all its lines, or that of the step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "data/import/csv_table.hpp"
#include "data/import/numbers.hpp"
#include "data/import/sequence_source.hpp"

namespace echelon::inline data {
namespace {

class StepsCsv final : public SequenceSource {
 public:
  StepsCsv(const std::string& path, Heading heading, bool step_labels) : table_(path, heading, 2) {
    info_.step_labels = step_labels;
    info_.heading = table_.heading();
    std::set<std::string> labels, ended;
    std::string name;
    while (read_step()) {
      labels.insert(label_);
      if (name_ != name && !ended.insert(name_).second)
        fail(fmt::format("sequence '{}' continues after another one; keep its lines together", name_));
      name = name_;
    }
    if (labels.empty()) fail("holds no sequence");
    info_.class_names.assign(labels.begin(), labels.end());
    const auto by_number = [](const std::string& text) {
      double value = 0;
      return parse_number(text, value) ? value : INFINITY;
    };
    std::stable_sort(info_.class_names.begin(), info_.class_names.end(),
                     [&](const auto& a, const auto& b) { return by_number(a) < by_number(b); });
    StepsCsv::rewind();
  }

  const SequenceInfo& info() const override { return info_; }

  void rewind() override {
    table_.rewind();
    ahead_ = read_step();
  }

  bool next(SequenceRecord& record) override {
    if (!ahead_) return false;
    const std::string name = name_, label = label_;
    record.values.clear(), record.labels.clear();
    do {
      if (info_.step_labels)
        record.labels.push_back(number_of(label_));
      else if (label_ != label)
        fail(fmt::format("sequence '{}' has label '{}', but it had '{}' before; --step-labels reads one a step", name,
                         label_, label));
      record.values.insert(record.values.end(), step_.begin(), step_.end());
      ahead_ = read_step();
    } while (ahead_ && name_ == name);
    record.label = number_of(label);
    return true;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}:{}: {}", table_.path(), table_.line(), what));
  }

  std::int32_t number_of(const std::string& label) const {
    const auto& names = info_.class_names;
    return static_cast<std::int32_t>(std::find(names.begin(), names.end(), label) - names.begin());
  }

  // Reads the next line with a step into name_, label_ and step_.
  bool read_step() {
    if (!table_.next(cells_)) return false;
    if (cells_.size() < 3) fail("a line needs the sequence's name, its label and at least one number");
    name_ = cells_[0];
    label_ = cells_[1];
    step_.clear();
    for (std::size_t column = 2; column < cells_.size(); ++column) {
      double value = 0;
      if (!parse_number(cells_[column], value))
        fail(fmt::format("column {}: '{}' is not a finite number", column + 1, cells_[column].substr(0, 40)));
      step_.push_back(static_cast<float>(value));
      if (!std::isfinite(step_.back())) fail(fmt::format("column {}: too large for a 32-bit float", column + 1));
    }
    const auto features = static_cast<std::int64_t>(step_.size());
    if (info_.features == 0) info_.features = features;
    if (features != info_.features)
      fail(fmt::format("{} numbers, but the first step has {}", features, info_.features));
    return true;
  }

  CsvTable table_;
  SequenceInfo info_;
  std::vector<std::string_view> cells_;
  std::string name_, label_;
  std::vector<float> step_;
  bool ahead_ = false;  // the step just read belongs to the next record
};

}  // namespace

std::unique_ptr<SequenceSource> open_steps_csv(const std::string& path, Heading heading, bool step_labels) {
  return std::make_unique<StepsCsv>(path, heading, step_labels);
}

}  // namespace echelon::inline data
