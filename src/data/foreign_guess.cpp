// SPDX-License-Identifier: Apache-2.0
#include "data/foreign_guess.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "base/lower_case.hpp"
#include "base/text.hpp"
#include "config/keys.hpp"
#include "data/foreign_axes.hpp"
#include "data/foreign_file.hpp"
#include "data/import/image.hpp"
#include "data/netcdf_hints.hpp"

namespace echelon::inline data {
namespace {

using Infos = std::vector<h5::DatasetInfo>;

constexpr std::int64_t kMostLabels = 4 << 20, kMostClasses = 100'000;
constexpr double kMeasuredBytes = 64 << 20;

std::string last_part(const std::string& name) { return lower_case(name.substr(name.rfind('/') + 1)); }
bool has_word(const std::string& name, const std::vector<std::string>& words) {
  const std::string last = last_part(name);
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return last.find(word) != last.npos; });
}
bool named_like_labels(const std::string& name) {
  const std::string last = last_part(name);
  return last == "y" || last == "ans" || has_word(name, {"label", "target", "class"});
}

// Whether `other` lies beside `first` as further channels: the same extents but for one outer or inner axis of
// channels.
bool joins(const h5::DatasetInfo& first, const h5::DatasetInfo& other) {
  const Shape &a = first.shape, &b = other.shape;
  if (a.rank() != b.rank() || a.rank() < 3) return false;
  for (int axis = 0; axis + 1 < a.rank(); ++axis)
    if (a[axis] != b[axis]) return false;
  return true;
}

// The dataset that most likely holds the samples, the largest one, then those that could be joined to it.
Infos samples_among(const Infos& all) {
  const h5::DatasetInfo* largest = nullptr;
  for (const h5::DatasetInfo& info : all)
    if (info.shape.rank() >= 2 && !named_like_labels(info.name) &&
        (largest == nullptr || info.shape.elems() > largest->shape.elems()))
      largest = &info;
  if (largest == nullptr) return {};
  Infos found = {*largest};
  for (const h5::DatasetInfo& info : all)
    if (info.name != largest->name && joins(*largest, info) && !named_like_labels(info.name)) found.push_back(info);
  return found;
}

const h5::DatasetInfo* labels_among(const Infos& all, const Infos& samples, bool one_sample) {
  const h5::DatasetInfo* found = nullptr;
  const std::int64_t n = samples.front().shape[0];
  for (const h5::DatasetInfo& info : all) {
    const bool is_sample =
        std::any_of(samples.begin(), samples.end(), [&](const auto& s) { return s.name == info.name; });
    const bool fits = one_sample ? info.shape.rank() <= 1 && info.shape.elems() < 4096
                                 : info.shape.rank() >= 1 && info.shape.rank() <= 2 && info.shape[0] == n;
    if (is_sample || !fits || has_word(info.name, {"weight", "index", "lat", "lon", "time"})) continue;
    if (found == nullptr || (named_like_labels(info.name) && !named_like_labels(found->name))) found = &info;
  }
  return found;
}

// A class for every place: integers with the extents of the samples, but for channels.
const h5::DatasetInfo* dense_labels_among(const Infos& all, const h5::DatasetInfo& samples, const std::string& axes) {
  std::vector<std::int64_t> extents;
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    if (axes[axis] != 'C' && axes[axis] != 'F') extents.push_back(samples.shape[static_cast<int>(axis)]);
  if (axes.find_first_of("HW") == std::string::npos || std::ssize(axes) != samples.shape.rank()) return nullptr;
  for (const h5::DatasetInfo& info : all)
    if (named_like_labels(info.name) && info.name != samples.name && info.dtype != DType::f32 &&
        info.dtype != DType::f64 && info.shape == Shape(extents))
      return &info;
  return nullptr;
}

// 255 and negative numbers stand for places without a class more often than for one.
std::string dense_label_keys(const h5::Reader& file, const h5::DatasetInfo& info, bool one_sample) {
  const std::int64_t each = one_sample ? info.shape.elems() : info.shape.row_elems(),
                     rows = one_sample ? 1 : std::clamp<std::int64_t>(kMostLabels / each, 1, info.shape[0]);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(rows * each));
  read_records(file, info.name, one_sample, {0, rows}, labels.data(), DType::i32);
  std::int32_t greatest = 0;
  std::set<std::int32_t> none;
  for (const std::int32_t label : labels)
    if (label < 0 || label == 255)
      none.insert(label);
    else
      greatest = std::max(greatest, label);
  return fmt::format("labels = {}\nlabel_form = \"dense\"\nclasses = {}  # the greatest of {} + 1{}\n",
                     value_toml(info.name), greatest + 1, counted(rows * each, "label"),
                     none.empty() ? "" : fmt::format("; with [model] ignore_label = [{}]", fmt::join(none, ", ")));
}

// Tells by up to four million values what the labels are.
std::string label_keys(const h5::Reader& file, const h5::DatasetInfo& info, bool one_sample) {
  const std::int64_t rows = one_sample ? 1 : info.shape[0],
                     columns = info.shape.elems() / std::max<std::int64_t>(rows, 1);
  const std::int64_t read = std::min(rows, std::max<std::int64_t>(kMostLabels / std::max<std::int64_t>(columns, 1), 1));
  std::vector<double> values(static_cast<std::size_t>(read * columns));
  read_records(file, info.name, one_sample, {0, read}, values.data(), DType::f64);
  double greatest = 0;
  bool whole = true, hot = columns > 1;
  std::set<double> kinds;
  for (std::int64_t i = 0; i < read; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < columns; ++k) {
      const double value = values[static_cast<std::size_t>(i * columns + k)];
      whole = whole && value >= 0 && value == std::floor(value);
      hot = hot && (value == 0 || value == 1);
      sum += value;
      greatest = std::max(greatest, value);
      if (kinds.size() <= 1000) kinds.insert(value);
    }
    hot = hot && sum == 1;
  }
  std::string text = fmt::format("labels = {}\n", value_toml(info.name));
  if (hot) return text + "label_form = \"one_hot\"\n";
  const bool floats = info.dtype == DType::f32 || info.dtype == DType::f64;
  const bool classes = whole && columns == 1 && greatest < kMostClasses && (!floats || std::ssize(kinds) <= 1000) &&
                       (one_sample || std::ssize(kinds) < std::max<std::int64_t>(read, 2));
  if (classes)
    return text + fmt::format("label_form = \"class\"\nclasses = {}  # the greatest of {} + 1\n",
                              static_cast<std::int64_t>(greatest) + 1, counted(read, "label"));
  return text + "label_form = \"values\"\n";
}

// Mean and standard deviation by channel of the first records, in units of value * scale.
std::string normalisation(const h5::Reader& file, const Hdf5Config& keys) {
  const ForeignFile samples(file.path(), file.path(), keys);
  const Shape shape = samples.sample_shape();
  const double record = static_cast<double>(shape.elems()) * static_cast<double>(size_of(samples.stored()));
  const std::int64_t n = std::clamp<std::int64_t>(static_cast<std::int64_t>(kMeasuredBytes / record), 1,
                                                  std::min<std::int64_t>(samples.rows().count, 1024));
  std::vector<std::uint8_t> block(static_cast<std::size_t>(static_cast<double>(n) * record));
  samples.read(0, n, block.data());
  const bool steps = samples.is_sequence();
  constexpr std::int64_t kMostListed = 16;  // with more channels, one number for all
  const bool listed = shape[steps ? 1 : 0] <= kMostListed;
  const std::int64_t channels = listed ? shape[steps ? 1 : 0] : 1, inner = steps ? 1 : shape.row_elems();
  std::vector<double> sum(static_cast<std::size_t>(channels)), squares(sum), count(sum);
  for (std::int64_t i = 0; i < n * shape.elems(); ++i) {
    const double value = samples.stored() == DType::u8 ? static_cast<double>(block[static_cast<std::size_t>(i)])
                                                       : static_cast<double>(reinterpret_cast<float*>(block.data())[i]);
    if (!std::isfinite(value)) continue;
    const auto c = static_cast<std::size_t>(i / inner % channels);
    sum[c] += value;
    squares[c] += value * value;
    count[c] += 1;
  }
  std::vector<double> mean, deviation;
  for (std::size_t c = 0; c < sum.size(); ++c) {
    const double m = count[c] > 0 ? sum[c] / count[c] : 0, v = count[c] > 0 ? squares[c] / count[c] - m * m : 0;
    mean.push_back(m * samples.scale());
    deviation.push_back(v > 0 ? std::sqrt(v) * samples.scale() : 1);
  }
  const bool gaps = std::accumulate(count.begin(), count.end(), 0.0) < static_cast<double>(n * shape.elems());
  return fmt::format("mean = [{:.5g}]  # of the first {}\nstd = [{:.5g}]\n{}", fmt::join(mean, ", "),
                     counted(n, "record"), fmt::join(deviation, ", "), gaps ? "missing = \"mean\"\n" : "");
}

// Rows that begin as JPEG and PNG files do. Returns false if there are none.
bool guess_encoded(const h5::Reader& file, const Infos& all, ForeignGuess& guess) {
  constexpr std::int64_t kLookedAt = 64;
  const std::vector<std::string> lengths_words = {"length", "size", "bytes"};
  for (const std::string& name : file.names()) {
    const std::optional<h5::ByteRows> rows = file.byte_rows(name);
    if (!rows || rows->count == 0) continue;
    const std::int64_t count = std::min(rows->count, kLookedAt);
    std::vector<std::uint8_t> bytes;
    std::vector<std::size_t> ends;
    std::set<std::pair<std::int64_t, std::int64_t>> sizes;
    bool coloured = false;
    try {
      file.read_bytes(name, 0, count, bytes, ends);
      for (std::size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++]) {
        const ImageHeader header = image_header({reinterpret_cast<const char*>(bytes.data()) + begin, ends[i] - begin});
        sizes.emplace(header.height, header.width);
        coloured |= header.coloured;
      }
    } catch (const DataError&) {
      if (sizes.empty()) continue;  // numbers
      guess.notes.push_back(fmt::format("sample {} of '{}' is damaged", sizes.size(), name));
    }
    guess.table =
        fmt::format("[data.hdf5]\nsamples = {}\nencoded = \"{}\"\n", value_toml(name), coloured ? "rgb" : "grey");
    const auto beside = [&](const std::vector<std::string>& words) {
      return std::find_if(all.begin(), all.end(), [&](const h5::DatasetInfo& info) {
        return info.name != name && info.shape == Shape{rows->count} && has_word(info.name, words);
      });
    };
    if (const auto lengths = beside(lengths_words); rows->width > 0 && lengths != all.end())
      guess.table += fmt::format("lengths = {}\n", value_toml(lengths->name));
    h5::DatasetInfo samples;
    samples.name = name;
    samples.shape = {rows->count};
    Infos others = all;
    std::erase_if(others, [&](const h5::DatasetInfo& info) { return has_word(info.name, lengths_words); });
    if (const h5::DatasetInfo* labels = labels_among(others, {samples}, false))
      guess.table += label_keys(file, *labels, false);
    else
      guess.notes.emplace_back("no dataset looks like labels: name it by `labels`");
    const auto [height, width] = *sizes.begin();
    if (sizes.size() > 1)
      guess.notes.push_back(
          fmt::format("images have different sizes, the smallest {} x {}: data.image_size = [224, 224] "
                      "says what the model sees",
                      height, width));
    return true;
  }
  return false;
}

}  // namespace

ForeignGuess guess_foreign(const h5::Reader& file, const std::vector<h5::DatasetInfo>& all, bool several) {
  ForeignGuess guess;
  const NetcdfHints netcdf(file, all);
  if (guess_encoded(file, all, guess)) return guess;
  Infos datasets = all;
  std::erase_if(datasets, [&](const h5::DatasetInfo& info) { return netcdf.describes_others(info.name); });
  const Infos samples = samples_among(datasets);
  if (samples.empty()) {
    guess.notes.emplace_back("no dataset of numbers has two axes or more, so none can hold samples");
    return guess;
  }
  const h5::DatasetInfo& first = samples.front();
  const bool labels_beside = labels_among(datasets, samples, false) != nullptr;
  const std::string axes = netcdf.axes_of(first);
  const bool one_sample =
      axes.empty() ? several && !labels_beside && first.shape.rank() == 3 : axes.find('N') == std::string::npos;
  Hdf5Config keys;
  keys.samples = {first.name};
  keys.axes = axes.empty() ? likely_axes(first.shape, one_sample) : axes;
  guess.table = fmt::format("[data.hdf5]\nsamples = {}\naxes = {}\n", value_toml(first.name), value_toml(keys.axes));
  if (samples.size() > 1) {
    std::vector<std::string> names, others;
    for (const h5::DatasetInfo& info : samples) names.push_back(info.name);
    for (std::size_t i = 1; i < names.size(); ++i) others.push_back(value_toml(names[i]));
    guess.notes.push_back(fmt::format("{} could be joined as further channels: samples = {}", fmt::join(others, ", "),
                                      value_toml(names)));
  }
  if (const h5::DatasetInfo* dense = dense_labels_among(datasets, first, keys.axes))
    guess.table += dense_label_keys(file, *dense, one_sample);
  else if (const h5::DatasetInfo* labels = labels_among(datasets, samples, one_sample))
    guess.table += label_keys(file, *labels, one_sample);
  else
    guess.notes.emplace_back(
        "no dataset looks like labels: name it by `labels`, or use labels_file = [ending of this file, "
        "ending of the file of labels]");
  for (const h5::DatasetInfo& info : datasets)
    if (!one_sample && info.shape.rank() == 1 && info.shape[0] == first.shape[0] && has_word(info.name, {"weight"}))
      guess.table += fmt::format("weights = {}\n", value_toml(info.name));
  std::vector<std::string> parts;
  for (const h5::NamedRows& named : file.named_rows())
    if (named.dataset == first.name) parts.push_back(named.part);
  if (!parts.empty()) guess.table += fmt::format("split = {}\n", value_toml(parts.front()));
  if (parts.size() > 1) guess.table += fmt::format("test_split = {}\n", value_toml(parts.back()));
  if (keys.misfit()) {
    guess.notes.push_back(keys.misfit()->why);
    return guess;
  }
  try {
    guess.table += normalisation(file, keys);
  } catch (const DataError& error) {
    guess.notes.emplace_back(error.what());
  }
  return guess;
}

}  // namespace echelon::inline data
