// Sequences as a table with one time step a line:
//
//   sequence,label,x,y      a header, left out where a line's values are no numbers
//   walk-1,run,0.3,1.2      lines that follow each other with the same first cell are one sequence
//   walk-1,run,0.4,1.1
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "data/import/byte_stream.hpp"
#include "data/import/numbers.hpp"
#include "data/import/sequence_source.hpp"

namespace echelon {
namespace {

class StepsCsv final : public SequenceSource {
 public:
  explicit StepsCsv(const std::string& path) : stream_(path) {
    std::set<std::string> labels, ended;
    std::string name;
    while (read_step()) {
      labels.insert(label_);
      if (name_ != name && !ended.insert(name_).second)
        fail(fmt::format("sequence '{}' comes again after another one; keep its lines together", name_));
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
    stream_.rewind();
    line_ = 0;
    ahead_ = read_step();
  }

  bool next(SequenceRecord& record) override {
    if (!ahead_) return false;
    const std::string name = name_, label = label_;
    record.values.clear();
    do {
      if (label_ != label) fail(fmt::format("sequence '{}' has label '{}', before it had '{}'", name, label_, label));
      record.values.insert(record.values.end(), step_.begin(), step_.end());
      ahead_ = read_step();
    } while (ahead_ && name_ == name);
    const auto& names = info_.class_names;
    record.label = static_cast<std::int32_t>(std::find(names.begin(), names.end(), label) - names.begin());
    return true;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}:{}: {}", stream_.path(), line_, what));
  }

  // The next line that is a step: name_, label_, step_.
  bool read_step() {
    while (stream_.line(text_)) {
      ++line_;
      if (trimmed(text_).empty() || (line_ == 1 && is_header())) continue;
      step_.clear();
      const std::int64_t cells = for_cells(text_, ',', [&](std::int64_t column, std::string_view cell) {
        if (column == 0) name_ = cell;
        if (column == 1) label_ = cell;
        double value = 0;
        if (column < 2) return;
        if (!parse_number(cell, value))
          fail(fmt::format("column {}: '{}' is not a finite number", column + 1, cell.substr(0, 40)));
        step_.push_back(static_cast<float>(value));
      });
      if (cells < 3) fail("a step wants the sequence's name, its label and one number or more");
      if (info_.features == 0) info_.features = cells - 2;
      if (cells - 2 != info_.features)
        fail(fmt::format("{} numbers, but the first step has {}", cells - 2, info_.features));
      return true;
    }
    return false;
  }

  bool is_header() const {
    bool any = false;
    double ignored = 0;
    for_cells(text_, ',', [&](std::int64_t column, std::string_view cell) {
      any = any || (column >= 2 && parse_number(cell, ignored));
    });
    return !any;
  }

  ByteStream stream_;
  SequenceInfo info_;
  std::int64_t line_ = 0;
  std::string text_, name_, label_;
  std::vector<float> step_;
  bool ahead_ = false;  // a step was read that no record has yet
};

}  // namespace

std::unique_ptr<SequenceSource> open_steps_csv(const std::string& path) { return std::make_unique<StepsCsv>(path); }

}  // namespace echelon
