// SPDX-License-Identifier: Apache-2.0
// Time series in the .ts format of the UCR and UEA archives (https://www.timeseriesclassification.com): # and @ lines,
// then one series per line, with colons between dimensions, commas between values, and the class last.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/lower_case.hpp"
#include "base/nearest.hpp"
#include "data/import/byte_stream.hpp"
#include "data/import/numbers.hpp"
#include "data/import/sequence_source.hpp"

namespace echelon::inline data {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for_cells(line, ' ', [&](std::int64_t, std::string_view word) {
    if (!word.empty()) words.emplace_back(word);
  });
  return words;
}

class Ts final : public SequenceSource {
 public:
  explicit Ts(const std::string& path) : stream_(path) {
    read_header();
    if (info_.class_names.empty()) fail("the header has no \"@classLabel true ..\" with the classes");
    SequenceRecord first;
    if (!next(first)) fail("holds no series");  // determines the number of dimensions
    rewind();
  }

  const SequenceInfo& info() const override { return info_; }

  void rewind() override {
    stream_.rewind();
    line_ = 0;
    read_header();
  }

  bool next(SequenceRecord& record) override {
    while (stream_.line(text_)) {
      ++line_;
      if (trimmed(text_).empty() || text_[0] == '#') continue;
      parse(record);
      return true;
    }
    return false;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}:{}: {}", stream_.path(), line_, what));
  }

  void read_header() {
    info_.class_names.clear();
    while (stream_.line(text_)) {
      ++line_;
      const std::string_view line = trimmed(text_);
      if (line.empty() || line[0] == '#') continue;
      if (line[0] != '@') fail("a series comes before @data");
      std::vector<std::string> words = words_of(line);
      const std::string key = lower_case(words[0]);
      const bool is_true = words.size() > 1 && lower_case(words[1]) == "true";
      if (key == "@data") return;
      if (key == "@timestamps" && is_true)
        fail("series with time stamps cannot be read; store one value per time step");
      if (key == "@targetlabel" && is_true)
        fail("the target is a number (@targetLabel), expected classes (@classLabel)");
      if (key == "@classlabel" && is_true) info_.class_names.assign(words.begin() + 2, words.end());
    }
    fail("the file ends before @data");
  }

  void parse(SequenceRecord& record) {
    const auto last = text_.rfind(':');
    if (last == std::string::npos) fail("a series needs its values, a colon and its class");
    record.label = label_of(trimmed(std::string_view(text_).substr(last + 1)));
    channels_.clear();
    const std::int64_t dimensions =
        for_cells(std::string_view(text_).substr(0, last), ':', [&](std::int64_t dimension, std::string_view values) {
          channels_.emplace_back();
          for_cells(values, ',', [&](std::int64_t step, std::string_view cell) { add(dimension, step, cell); });
        });
    if (info_.features == 0) info_.features = dimensions;
    if (dimensions != info_.features)
      fail(fmt::format("{} dimensions, but the first series has {}", dimensions, info_.features));
    interleave(record);
  }

  void add(std::int64_t dimension, std::int64_t step, std::string_view cell) {
    double value = 0;
    if (cell == "?")
      fail(
          fmt::format("dimension {}, step {}: a missing value; fill in missing values first", dimension + 1, step + 1));
    if (!parse_number(cell, value))
      fail(fmt::format("dimension {}, step {}: '{}' is not a finite number", dimension + 1, step + 1,
                       cell.substr(0, 40)));
    channels_.back().push_back(static_cast<float>(value));
    if (!std::isfinite(channels_.back().back()))
      fail(fmt::format("dimension {}, step {}: too large for a 32-bit float", dimension + 1, step + 1));
  }

  // The file stores dimension by dimension, the record step by step.
  void interleave(SequenceRecord& record) const {
    const std::size_t steps = channels_[0].size();
    for (std::size_t c = 1; c < channels_.size(); ++c)
      if (channels_[c].size() != steps)
        fail(fmt::format("dimension {} has {} steps, but dimension 1 has {}", c + 1, channels_[c].size(), steps));
    record.values.clear();
    for (std::size_t t = 0; t < steps; ++t)
      for (const std::vector<float>& channel : channels_) record.values.push_back(channel[t]);
  }

  std::int32_t label_of(std::string_view name) const {
    const auto& names = info_.class_names;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail(unknown_name("class", name, names));
    return static_cast<std::int32_t>(found - names.begin());
  }

  ByteStream stream_;
  SequenceInfo info_;
  std::vector<std::vector<float>> channels_;
  std::int64_t line_ = 0;
  std::string text_;
};

}  // namespace

std::unique_ptr<SequenceSource> open_ts(const std::string& path) { return std::make_unique<Ts>(path); }

}  // namespace echelon::inline data
