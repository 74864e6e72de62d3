// SPDX-License-Identifier: Apache-2.0
#include "data/foreign_labels.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"

namespace echelon::inline data {
namespace {

bool is_real(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

}  // namespace

ForeignLabels::ForeignLabels(const ForeignFile& samples, const Hdf5Config& keys, Labels expected)
    : samples_(samples), keys_(keys) {
  const bool here = keys_.labels_file.empty() || open_own_file(expected);
  if (!keys_.labels.empty() && here && (expected == Labels::needed || file().has(keys_.labels))) open_labels();
  if (!keys_.weights.empty()) open_weights();
}

std::string labels_file_of(const std::string& path, const Hdf5Config& keys) {
  if (keys.labels_file.empty()) return "";
  const std::string& ending = keys.labels_file[0];
  if (!path.ends_with(ending))
    throw DataError(
        fmt::format("{}: its name does not end with '{}', so that data.hdf5.labels_file names no file of "
                    "labels for it; data.train and data.test can be patterns: \"folder/*{}\"",
                    path, ending, ending));
  return path.substr(0, path.size() - ending.size()) + keys.labels_file[1];
}

bool ForeignLabels::open_own_file(Labels expected) {
  const std::string name = labels_file_of(samples_.path(), keys_);
  if (expected == Labels::optional && ::access(name.c_str(), F_OK) != 0) return false;
  own_file_ = std::make_unique<h5::Reader>(name);
  return true;
}

void ForeignLabels::open_labels() {
  if (!file().has(keys_.labels))
    throw DataError(
        fmt::format("{}: {}", file().path(), unknown_name("dataset of labels", keys_.labels, file().names())));
  labels_ = file().info(keys_.labels);
  file().require_written(keys_.labels);
  const auto fail = [&](const std::string& what) { fail_foreign(file().path(), keys_.labels, what); };
  const bool one = samples_.is_one_sample();
  const Shape& shape = labels_.shape;
  if (!one) {
    if (shape.rank() == 0) fail("is one value, but each sample needs a label");
    const std::int64_t all = samples_.datasets().front().shape[0];
    if (shape[0] != all) fail(fmt::format("has {} for {}", counted(shape[0], "label"), counted(all, "sample")));
  }
  columns_ = one ? shape.elems() : shape.row_elems();
  const int axes = shape.rank() - (one ? 0 : 1);
  const bool table = columns_ > 1;
  form_ = keys_.label_form;
  if (form_ == LabelForm::automatic) form_ = keys_.classes > 0 ? LabelForm::classes : LabelForm::values;
  const bool many =
      axes > 1 && table && form_ != LabelForm::dense && form_ != LabelForm::values && form_ != LabelForm::steps;
  if (many)
    fail(fmt::format("has shape {}, a label for every place; nearest: label_form = \"dense\" or \"values\"",
                     shape.text()));
  if (form_ == LabelForm::classes && table)
    fail(fmt::format("has shape {}, {} numbers a sample, which are no class; label_form = \"one_hot\" or \"column\"",
                     shape.text(), columns_));
  if (form_ == LabelForm::column && keys_.label_column >= columns_)
    fail(fmt::format("has {}, so that data.hdf5.label_column = {} is none of 0 to {}", counted(columns_, "column"),
                     keys_.label_column, columns_ - 1));
  if (form_ == LabelForm::one_hot && columns_ < 2)
    fail(fmt::format("has shape {}, one number a sample: label_form = \"class\" or \"values\"", shape.text()));
  if (form_ == LabelForm::one_hot && keys_.classes > 0 && keys_.classes != columns_)
    fail(fmt::format("has {}, but data.hdf5.classes = {}", counted(columns_, "column"), keys_.classes));
  classes_ = form_ == LabelForm::one_hot ? columns_ : keys_.classes;
  shape_ = shape_of_label();
  const NetcdfPacking packing = packing_of(file(), keys_.labels);
  factor_ = packing.factor;
  offset_ = packing.offset;
  fills_ = packing.fills;
  if (classes_ > 0 && (factor_ != 1 || offset_ != 0))
    fail("has the attribute scale_factor or add_offset, so that its values are no classes");
  factor_ /= keys_.label_std;
  offset_ = (offset_ - keys_.label_mean) / keys_.label_std;
}

// Extents of 1 do not matter in dense labels: (N, 1, H, W) and (N, H, W, 1) are (N, H, W).
Shape ForeignLabels::shape_of_label() const {
  const Shape own = samples_.is_one_sample() ? labels_.shape : labels_.shape.without_front();
  const auto without_ones = [](const Shape& shape) {
    std::vector<std::int64_t> extents;
    for (const std::int64_t extent : shape.extents())
      if (extent != 1) extents.push_back(extent);
    return extents;
  };
  if (form_ == LabelForm::dense) {
    const Shape places = samples_.sample_shape().without_front();
    if (without_ones(own) != without_ones(places))
      fail_foreign(file().path(), keys_.labels,
                   fmt::format("has shape {}, but the places of a sample are {}: label_form = \"dense\" needs a class "
                               "for each",
                               labels_.shape.text(), places.text()));
    return places;
  }
  if (form_ == LabelForm::steps) {
    const std::int64_t steps = samples_.sample_shape()[0];
    if (own.rank() < 1 || own[0] != steps || own.rank() > 2)
      fail_foreign(file().path(), keys_.labels,
                   fmt::format("has shape {}, but samples have {}: label_form = \"steps\" reads (N, T) or (N, T, K)",
                               labels_.shape.text(), counted(steps, "step")));
    if (columns_ != steps && keys_.classes > 0)
      fail_foreign(file().path(), keys_.labels,
                   fmt::format("has shape {}, {} numbers a step, which are no class; leave classes out",
                               labels_.shape.text(), own[1]));
    return columns_ == steps ? Shape{} : Shape{own[1]};
  }
  if (form_ != LabelForm::values || columns_ == 1) return {};
  if (without_ones(own).size() == 1) return {columns_};
  const auto channels = keys_.axes.find_first_of("CF");
  if (own.rank() + (samples_.is_one_sample() ? 0 : 1) == std::ssize(keys_.axes) && channels != std::string::npos &&
      channels != keys_.axes.find_first_not_of('N'))
    fail_foreign(file().path(), keys_.labels,
                 fmt::format("has shape {} and data.hdf5.axes = \"{}\": numbers for each place must have their "
                             "channels before the places{}",
                             labels_.shape.text(), keys_.axes,
                             samples_.is_sequence() ? ", and for each time step label_form = \"steps\"" : ""));
  return own;
}

// Axes of extent 1 may lie before those of dense labels.
void ForeignLabels::narrow(const SlabRange& part) {
  if (!part.any() || !exist()) return;
  const Shape own = samples_.is_one_sample() ? labels_.shape : labels_.shape.without_front();
  int axis = part.axis;
  while (own[axis] != shape_[part.axis]) ++axis;
  part_ = SlabRange{axis, part.begin, part.end}.behind(samples_.is_one_sample() ? 0 : 1);
  columns_ = columns_ / own[axis] * part.count();
  shape_ = part.shape_of(shape_);
}

void ForeignLabels::open_weights() {
  if (!samples_.file().has(keys_.weights))
    fail_foreign(samples_.path(), keys_.weights, "is missing (data.hdf5.weights)");
  weights_ = samples_.file().info(keys_.weights);
  samples_.file().require_written(keys_.weights);
  const std::int64_t each = samples_.is_one_sample() ? weights_.shape.elems() : weights_.shape.row_elems();
  const bool as_many = samples_.is_one_sample() ||
                       (weights_.shape.rank() > 0 && weights_.shape[0] == samples_.datasets().front().shape[0]);
  if (each != 1 || !as_many)
    fail_foreign(samples_.path(), keys_.weights,
                 fmt::format("has shape {}, must hold one weight a sample", weights_.shape.text()));
}

std::vector<double> ForeignLabels::table(std::int64_t first, std::int64_t count) const {
  std::vector<double> values(static_cast<std::size_t>(count * columns_));
  read_records(file(), keys_.labels, samples_.is_one_sample(), rows_of(first, count), values.data(), DType::f64, part_);
  return values;
}

void ForeignLabels::read_classes(std::int64_t first, std::int64_t count, std::int32_t* dst) const {
  const bool many = form_ == LabelForm::dense || form_ == LabelForm::steps, plain = many || form_ == LabelForm::classes;
  if (plain && !is_real(labels_.dtype))
    return read_records(file(), keys_.labels, samples_.is_one_sample(), rows_of(first, count), dst, DType::i32, part_);
  const std::vector<double> values = table(first, count);
  const auto fail = [&](std::int64_t record, const std::string& what) {
    throw DataError(fmt::format("{}: record {} of '{}' {}", file().path(), first + record, keys_.labels, what));
  };
  const std::int64_t labels = many ? columns_ : 1, each = columns_ / labels;
  for (std::int64_t i = 0; i < count * labels; ++i) {
    const double* row = values.data() + i * each;
    if (form_ == LabelForm::one_hot) {
      const double* greatest = std::max_element(row, row + each);
      if (!(*greatest > 0) || std::count(row, row + each, *greatest) != 1)
        fail(i, "has no single greatest entry, so that it names no class (label_form = \"one_hot\")");
      dst[i] = static_cast<std::int32_t>(greatest - row);
      continue;
    }
    const double label = row[form_ == LabelForm::column ? keys_.label_column : 0];
    if (label != std::floor(label) || std::fabs(label) > 0x1p31)
      fail(i / labels,
           fmt::format("is {:g}, which is no class: leave data.hdf5.classes out if labels are numbers", label));
    dst[i] = static_cast<std::int32_t>(std::clamp(label, -0x1p31, 0x1p31 - 1));
  }
}

void ForeignLabels::read_numbers(std::int64_t first, std::int64_t count, float* dst) const {
  const bool column = form_ == LabelForm::column, packed = factor_ != 1 || offset_ != 0 || !fills_.empty();
  if (!column && !packed && labels_.dtype == DType::f32)
    return read_records(file(), keys_.labels, samples_.is_one_sample(), rows_of(first, count), dst, DType::f32, part_);
  const std::vector<double> values = table(first, count);
  const std::int64_t each = column ? 1 : columns_, skipped = column ? keys_.label_column : 0;
  const double* row = values.data() + skipped;
  for (std::int64_t n = 0; n < count; ++n, row += columns_, dst += each)
    for (std::int64_t i = 0; i < each; ++i) {
      const bool missing = std::find(fills_.begin(), fills_.end(), static_cast<float>(row[i])) != fills_.end();
      dst[i] = missing ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(row[i] * factor_ + offset_);
    }
}

void ForeignLabels::read_weights(std::int64_t first, std::int64_t count, float* dst) const {
  const RowRange rows{samples_.rows().first + first, count};
  read_records(samples_.file(), keys_.weights, samples_.is_one_sample(), rows, dst, DType::f32);
  for (std::int64_t i = 0; i < count; ++i)
    if (!(dst[i] >= 0) || !std::isfinite(dst[i]))
      throw DataError(fmt::format("{}: record {} of '{}' is the weight {:g}, must be 0 or more", samples_.path(),
                                  first + i, keys_.weights, dst[i]));
}

}  // namespace echelon::inline data
