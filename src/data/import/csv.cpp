// SPDX-License-Identifier: Apache-2.0
// CSV: one sample per line. Either one column is the class, a whole number from 0 or (in every line) text, or the last
// few columns are regression targets. All other columns are the values of the sample.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "data/import/csv_table.hpp"
#include "data/import/numbers.hpp"
#include "data/import/source.hpp"

namespace echelon::inline data {
namespace {

constexpr const char* kMissing = ": a missing value; fill it in, or leave the line out";
constexpr std::size_t kMostNames = 4000;  // so that names fit into an HDF5 attribute (64 KiB)

class Csv : public SampleSource {
 public:
  explicit Csv(const ImportRequest& request) : table_(request.inputs[0], request.heading, 0) {
    info_.sample = request.shape;
    info_.stored = request.stored;
    info_.scale = request.stored == DType::u8 ? 1 / request.value_max : 1.0;
    info_.targets = request.targets;
    info_.heading = table_.heading();
    columns_ = request.shape.elems() + std::max<std::int64_t>(1, request.targets);
    if (request.targets > 0) return;
    label_ = request.label_column < 0 ? columns_ + request.label_column : request.label_column;
    if (label_ < 0 || label_ >= columns_)
      throw ConfigError(fmt::format("label column {} of {} columns (shape {} and a label)", request.label_column,
                                    columns_, request.shape.text()));
    if (next_row() && !reads_as_number(cells_[static_cast<std::size_t>(label_)])) collect_names();
    table_.rewind();
  }

  const SourceInfo& info() const override { return info_; }
  void rewind() override { table_.rewind(); }

  std::int64_t read(std::int64_t most, std::uint8_t* samples, void* labels) override {
    const std::size_t bytes = static_cast<std::size_t>(info_.sample.elems()) * size_of(info_.stored);
    const std::int64_t each = std::max<std::int64_t>(1, info_.targets);
    std::int64_t count = 0;
    for (; count < most && next_row(); ++count)
      parse(samples + static_cast<std::size_t>(count) * bytes, static_cast<std::uint8_t*>(labels) + 4 * each * count);
    return count;
  }

 private:
  [[noreturn]] void fail(std::int64_t column, const std::string& what) const {
    const std::string_view cell = cells_[static_cast<std::size_t>(column)].substr(0, 40);
    throw DataError(
        fmt::format("{}: line {}, column {}: '{}' {}", table_.path(), table_.line(), column + 1, cell, what));
  }

  bool next_row() {
    if (!table_.next(cells_)) return false;
    if (static_cast<std::int64_t>(cells_.size()) != columns_)
      throw DataError(fmt::format("{}: line {} has {} between {}, expected {}: {} and {} values of shape {}",
                                  table_.path(), table_.line(), counted(std::ssize(cells_), "cell"), table_.separator(),
                                  columns_, info_.targets > 0 ? counted(info_.targets, "regression target") : "a label",
                                  info_.sample.elems(), info_.sample.text()));
    return true;
  }

  // If the first label is text, all must be; the classes are the names in sorted order.
  void collect_names() {
    std::map<std::string, std::int64_t, std::less<>> samples;
    const std::int64_t first_line = table_.line();
    const std::string first(cells_[static_cast<std::size_t>(label_)]);
    std::int64_t all = 0;
    do {
      const std::string_view name = cells_[static_cast<std::size_t>(label_)];
      if (name.empty() || name == "?") fail(label_, std::string("is not a class") + kMissing);
      if (reads_as_number(name))
        fail(label_, fmt::format("is a number, but the class in line {} is the text '{}'; classes are all numbers or "
                                 "all text (if line {} is a heading: --heading yes)",
                                 first_line, first, first_line));
      ++samples[std::string(name)];
      if (samples.size() > kMostNames)
        fail(label_, fmt::format("is one class too many: at most {} are possible; is column {} really the class?",
                                 count_text(kMostNames), label_ + 1));
      ++all;
    } while (next_row());
    if (table_.guessed_data() && first_line == 1 && samples[first] == 1 &&
        all > static_cast<std::int64_t>(samples.size()))
      throw DataError(
          fmt::format("{}: line 1 alone has the class '{}': if it is a heading, add --heading yes, if it is "
                      "a sample, --heading no",
                      table_.path(), first));
    for (const auto& [name, count] : samples) {
      numbers_.emplace(name, static_cast<std::int32_t>(info_.class_names.size()));
      info_.class_names.push_back(name);
    }
    info_.classes = static_cast<std::int64_t>(info_.class_names.size());
  }

  void parse(std::uint8_t* sample, std::uint8_t* label) {
    const std::int64_t first_target = info_.targets > 0 ? info_.sample.elems() : columns_;
    std::int64_t at = 0;
    for (std::int64_t column = 0; column < columns_; ++column) {
      if (column == label_) {
        store_class(label, column);
        continue;
      }
      double value = 0;
      const std::string_view cell = cells_[static_cast<std::size_t>(column)];
      if (!parse_number(cell, value))
        fail(column, std::string("is not a finite number") + (is_missing(cell) ? kMissing
                                                              : cell.find(',') != std::string_view::npos
                                                                  ? ": a decimal comma? write a point"
                                                                  : ""));
      if (column >= first_target)
        store_real(label + 4 * (column - first_target), column, value);
      else
        store(sample, at++, column, value);
    }
  }

  void store_class(std::uint8_t* label, std::int64_t column) const {
    const std::string_view cell = cells_[static_cast<std::size_t>(column)];
    double value = 0;
    std::int32_t number = 0;
    if (!numbers_.empty()) {
      const auto found = numbers_.find(cell);
      if (found == numbers_.end()) throw DataError(fmt::format("{}: changed while it was read", table_.path()));
      number = found->second;
    } else {
      if (!parse_number(cell, value) || value < 0 || value != std::floor(value) ||
          value > std::numeric_limits<std::int32_t>::max() - 1)
        fail(column, std::string("is not a label: labels are whole numbers from 0, or text in every line") +
                         (is_missing(cell) ? kMissing : ""));
      number = static_cast<std::int32_t>(value);
    }
    std::memcpy(label, &number, sizeof(number));
  }

  void store_real(std::uint8_t* to, std::int64_t column, double value) const {
    const auto real = static_cast<float>(value);
    if (!std::isfinite(real)) fail(column, "is too large for a 32-bit float");
    std::memcpy(to, &real, sizeof(real));
  }

  void store(std::uint8_t* sample, std::int64_t at, std::int64_t column, double value) const {
    if (info_.stored == DType::f32) {
      store_real(sample + 4 * at, column, value);
    } else {
      if (value < 0 || value > 255 || value != std::floor(value))
        fail(column, "is not a whole number from 0 to 255; store such values as f32");
      sample[at] = static_cast<std::uint8_t>(value);
    }
  }

  CsvTable table_;
  SourceInfo info_;
  std::int64_t columns_ = 0, label_ = -1;  // label_ -1: the last columns are targets
  std::vector<std::string_view> cells_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;  // by class name; empty: labels are numbers
};

}  // namespace

std::unique_ptr<SampleSource> open_csv(const ImportRequest& request) {
  if (request.inputs.size() != 1) throw ConfigError(fmt::format("csv takes one file; {} given", request.inputs.size()));
  if (request.targets < 0) throw ConfigError("--targets must not be negative");
  if (request.shape.rank() != 3 || request.shape.elems() == 0)
    throw ConfigError("csv needs the shape of a sample: --shape C,H,W");
  if (request.stored != DType::u8 && request.stored != DType::f32)
    throw ConfigError(fmt::format("samples are stored as u8 or f32, not {}", name_of(request.stored)));
  return std::make_unique<Csv>(request);
}

}  // namespace echelon::inline data
