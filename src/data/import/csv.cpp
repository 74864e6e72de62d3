// CSV: one sample a line, numbers apart by commas, one of them the label, or the last few of them numbers to be met. A
// first line without any number is a header.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/error.hpp"
#include "data/import/byte_stream.hpp"
#include "data/import/numbers.hpp"
#include "data/import/source.hpp"

namespace echelon {
namespace {

class Csv : public SampleSource {
 public:
  explicit Csv(const ImportRequest& request) : stream_(request.inputs[0]) {
    info_.sample = request.shape;
    info_.stored = request.stored;
    info_.scale = request.stored == DType::u8 ? 1 / request.value_max : 1.0;
    info_.targets = request.targets;
    columns_ = request.shape.elems() + std::max<std::int64_t>(1, request.targets);
    if (request.targets > 0) return;
    label_ = request.label_column < 0 ? columns_ + request.label_column : request.label_column;
    if (label_ < 0 || label_ >= columns_)
      throw ConfigError(fmt::format("label column {} of {} columns (shape {} and a label)", request.label_column,
                                    columns_, request.shape.text()));
  }

  const SourceInfo& info() const override { return info_; }

  void rewind() override {
    stream_.rewind();
    line_ = 0;
  }

  std::int64_t read(std::int64_t most, std::uint8_t* samples, void* labels) override {
    const std::size_t bytes = static_cast<std::size_t>(info_.sample.elems()) * size_of(info_.stored);
    const std::int64_t each = std::max<std::int64_t>(1, info_.targets);
    std::int64_t count = 0;
    while (count < most && stream_.line(text_)) {
      ++line_;
      if (trimmed(text_).empty() || (line_ == 1 && is_header(text_))) continue;
      parse(samples + static_cast<std::size_t>(count) * bytes, static_cast<std::uint8_t*>(labels) + 4 * each * count);
      ++count;
    }
    return count;
  }

 private:
  static bool is_header(std::string_view line) {
    bool any = false;
    double ignored = 0;
    for_cells(line, ',', [&](std::int64_t, std::string_view cell) { any = any || parse_number(cell, ignored); });
    return !any;
  }

  [[noreturn]] void fail(std::int64_t column, std::string_view cell, const std::string& what) const {
    throw DataError(
        fmt::format("{}: line {}, column {}: '{}' {}", stream_.path(), line_, column + 1, cell.substr(0, 40), what));
  }

  void parse(std::uint8_t* sample, std::uint8_t* label) {
    const std::int64_t first_target = info_.targets > 0 ? info_.sample.elems() : columns_;
    std::int64_t at = 0;
    const std::int64_t cells = for_cells(text_, ',', [&](std::int64_t column, std::string_view cell) {
      double value = 0;
      if (column >= columns_) return;
      if (!parse_number(cell, value)) fail(column, cell, "is not a finite number");
      if (column >= first_target)
        store_real(label + 4 * (column - first_target), column, cell, value);
      else if (column == label_)
        store_class(label, column, cell, value);
      else
        store(sample, at++, column, cell, value);
    });
    if (cells != columns_)
      throw DataError(fmt::format("{}: line {} has {} cells, expected {}: {} and {} values of shape {}", stream_.path(),
                                  line_, cells, columns_,
                                  info_.targets > 0 ? fmt::format("{} numbers to meet", info_.targets) : "a label",
                                  info_.sample.elems(), info_.sample.text()));
  }

  void store_class(std::uint8_t* label, std::int64_t column, std::string_view cell, double value) const {
    if (value < 0 || value != std::floor(value) || value > std::numeric_limits<std::int32_t>::max() - 1)
      fail(column, cell, "is no label: labels are whole numbers from 0");
    const auto number = static_cast<std::int32_t>(value);
    std::memcpy(label, &number, sizeof(number));
  }

  void store_real(std::uint8_t* to, std::int64_t column, std::string_view cell, double value) const {
    const auto real = static_cast<float>(value);
    if (!std::isfinite(real)) fail(column, cell, "is too great for a 32-bit float");
    std::memcpy(to, &real, sizeof(real));
  }

  void store(std::uint8_t* sample, std::int64_t at, std::int64_t column, std::string_view cell, double value) const {
    if (info_.stored == DType::f32) {
      store_real(sample + 4 * at, column, cell, value);
    } else {
      if (value < 0 || value > 255 || value != std::floor(value))
        fail(column, cell, "is no whole number from 0 to 255; store such values as f32");
      sample[at] = static_cast<std::uint8_t>(value);
    }
  }

  ByteStream stream_;
  SourceInfo info_;
  std::int64_t columns_ = 0, label_ = -1, line_ = 0;  // label_ -1: the last columns are targets
  std::string text_;
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

}  // namespace echelon
