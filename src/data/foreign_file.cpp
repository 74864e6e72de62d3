// SPDX-License-Identifier: Apache-2.0
#include "data/foreign_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "data/foreign_axes.hpp"
#include "data/shard_header.hpp"

namespace echelon::inline data {
namespace {

// "; nearest: axes = \"NHWC\"", where such axes can be read.
std::string nearest_axes(const Shape& shape, bool one_sample) {
  const std::string axes = likely_axes(shape, one_sample);
  if (axes == "N" || std::ssize(axes) != shape.rank()) return "";
  return fmt::format("; nearest: axes = \"{}\"", axes);
}

}  // namespace

NetcdfPacking packing_of(const h5::Reader& reader, const std::string& dataset) {
  const auto one = [&](const char* name, double fallback) {
    const std::vector<double> values = reader.numbers_of(dataset, name);
    if (values.empty()) return fallback;
    if (values.size() != 1 || !std::isfinite(values[0]))
      fail_foreign(reader.path(), dataset, fmt::format("has an attribute {} that is no single number", name));
    return values[0];
  };
  NetcdfPacking packing{.factor = one("scale_factor", 1), .offset = one("add_offset", 0), .fills = {}};
  if (packing.factor == 0) fail_foreign(reader.path(), dataset, "has the attribute scale_factor = 0");
  for (const char* name : {"_FillValue", "missing_value"})
    for (const double value : reader.numbers_of(dataset, name))
      if (!std::isnan(value)) packing.fills.push_back(static_cast<float>(value));
  // netCDF fills what was never written with a value of its own where the variable names none.
  if (packing.fills.empty() && !reader.numbers_of(dataset, "_Netcdf4Dimid").empty())
    if (const std::optional<double> fill = reader.fill_of(dataset)) packing.fills.push_back(static_cast<float>(*fill));
  return packing;
}

void fail_foreign(const std::string& path, const std::string& dataset, const std::string& what) {
  throw DataError(fmt::format("{}: dataset '{}' {}", path, dataset, what));
}

void read_records(const h5::Reader& reader, const std::string& dataset, bool one_sample, RowRange rows, void* dst,
                  DType dtype, const SlabRange& part) {
  if (part.any()) {
    Shape shape = part.shape_of(reader.info(dataset).shape);
    const std::array<std::int64_t, Shape::kMaxRank> zeros{};
    Shape offset = Shape(std::span(zeros).first(static_cast<std::size_t>(shape.rank()))).with(part.axis, part.begin);
    if (!one_sample) shape = shape.with_front(rows.count), offset = offset.with_front(rows.first);
    return reader.read_region(dataset, offset, shape, dst, dtype);
  }
  if (one_sample)
    reader.read_all(dataset, dst, dtype);
  else
    reader.read_rows(dataset, rows.first, rows.count, dst, dtype);
}

ForeignFile::ForeignFile(const std::string& read_from, const std::string& path, const Hdf5Config& keys)
    : keys_(keys),
      path_(path),
      file_(read_from),
      sequence_(keys.axes.find('T') != std::string::npos),
      one_(is_one_sample_a_file(keys)) {
  if (is_encoded()) {
    open_encoded();
  } else {
    for (const std::string& name : keys_.samples) sources_.push_back(open_source(name));
    join_sources();
    choose_rows();
    leave_room_for_lead();
  }
  set_normalisation();
}

ForeignFile::Source ForeignFile::open_source(const std::string& name) const {
  if (!file_.has(name)) throw DataError(fmt::format("{}: {}", path_, unknown_name("dataset", name, file_.names())));
  if (const auto rows = file_.byte_rows(name); rows && !rows->numbers)
    fail_foreign(
        path_, name,
        "holds rows of bytes, not numbers; data.hdf5.encoded = \"rgb\" or \"grey\" decodes JPEG and PNG files");
  Source source;
  source.info = file_.info(name);
  const Shape& shape = source.info.shape;
  if (shape.rank() != std::ssize(keys_.axes))
    fail_foreign(path_, name,
                 fmt::format("has shape {}, but data.hdf5.axes = \"{}\" names {} of its {} axes{}", shape.text(),
                             keys_.axes, keys_.axes.size(), shape.rank(), nearest_axes(shape, one_)));
  if (shape.elems() == 0) fail_foreign(path_, name, fmt::format("holds no sample: its shape is {}", shape.text()));
  file_.require_written(name);
  set_strides(source, shape);
  static_cast<NetcdfPacking&>(source) = packing_of(file_, name);
  return source;
}

// `read`: the shape of what is read of the dataset.
void ForeignFile::set_strides(Source& source, const Shape& read) const {
  const std::string order = sequence_ ? "TF" : "CDHW";
  source.slow_axis = -1;
  for (int axis = 0; axis < read.rank(); ++axis) {
    const char letter = keys_.axes[static_cast<std::size_t>(axis)];
    if (letter == 'N') continue;
    const auto at = order.find(letter == 'F' && !sequence_ ? 'C' : letter == 'C' && sequence_ ? 'F' : letter);
    std::int64_t stride = 1;
    for (int inner = axis + 1; inner < read.rank(); ++inner) stride *= read[inner];
    source.extents[at] = read[axis];
    source.strides[at] = stride;
    if (source.slow_axis < 0 || (read[source.slow_axis] == 1 && read[axis] > 1))
      source.slow_axis = axis, source.slow = at;
  }
  source.elems = one_ ? read.elems() : read.row_elems();
}

void ForeignFile::narrow(const SlabRange& part) {
  if (!part.any()) return;
  const char letter = keys_.axes.find('D') != std::string::npos ? 'D' : 'H';
  const std::size_t axis = keys_.axes.find(letter);
  ECHELON_CHECK(part.axis == 1 && axis != std::string::npos, "a part of {} along axis {}", sample_shape().text(),
                part.axis);
  for (Source& source : sources_) {
    source.part = {static_cast<int>(axis), part.begin, part.end};
    set_strides(source, source.part.shape_of(source.info.shape));
  }
  shape_[letter == 'D' ? 1 : 2] = part.count();
}

// Gives each channel of each dataset its place in the sample, and finds the sample's shape and type.
void ForeignFile::join_sources() {
  const std::size_t joined = sequence_ ? 1 : 0;  // the axis along which datasets are joined
  const Source& first = sources_.front();
  std::int64_t all = 0;
  bool bytes = keys_.transform == Transform::none;
  for (const Source& source : sources_) {
    for (std::size_t axis = 0; axis < shape_.size(); ++axis)
      if (axis != joined && source.extents[axis] != first.extents[axis])
        fail_foreign(path_, source.info.name,
                     fmt::format("has shape {}, but '{}' has {}: they can differ in channels only",
                                 source.info.shape.text(), first.info.name, first.info.shape.text()));
    if (!one_ && source.info.shape[0] != first.info.shape[0])
      fail_foreign(path_, source.info.name,
                   fmt::format("holds {}, but '{}' holds {}", counted(source.info.shape[0], "sample"), first.info.name,
                               first.info.shape[0]));
    all += source.extents[joined];
    bytes &= source.holds_bytes() && source.fills.empty();
  }
  for (const std::int64_t channel : keys_.channels)
    if (channel >= all)
      throw DataError(fmt::format("{}: data.hdf5.channels names channel {}, but there are {}: 0 to {}", path_, channel,
                                  all, all - 1));
  std::int64_t begin = 0;
  for (Source& source : sources_) {
    for (std::int64_t c = begin; c < begin + source.extents[joined]; ++c) {
      const auto found = std::find(keys_.channels.begin(), keys_.channels.end(), c);
      source.places.push_back(keys_.channels.empty()          ? c
                              : found == keys_.channels.end() ? -1
                                                              : found - keys_.channels.begin());
    }
    begin += source.extents[joined];
  }
  shape_ = first.extents;
  shape_[joined] = keys_.channels.empty() ? all : std::ssize(keys_.channels);
  for (Source& source : sources_) source.in_order = lies_in_order(source);
  stored_ = bytes && !sequence_ ? DType::u8 : DType::f32;
}

// Whether a record of the dataset lies in the file as it does in a sample.
bool ForeignFile::lies_in_order(const Source& source) const {
  if (sequence_ && (sources_.size() > 1 || !keys_.channels.empty())) return false;
  for (std::size_t i = 0; i < source.places.size(); ++i)
    if (source.places[0] < 0 || source.places[i] != source.places[0] + static_cast<std::int64_t>(i)) return false;
  bool ordered = true;
  for (std::int64_t axis = 3, stride = 1; axis >= 0; stride *= source.extents[static_cast<std::size_t>(axis--)])
    ordered &=
        source.extents[static_cast<std::size_t>(axis)] == 1 || source.strides[static_cast<std::size_t>(axis)] == stride;
  return ordered;
}

void ForeignFile::choose_rows() {
  if (one_) return;
  const std::int64_t all = sources_.front().info.shape[0];
  rows_ = {0, all};
  if (!keys_.rows.empty()) {
    if (keys_.rows[1] > all)
      throw DataError(fmt::format("{}: data.hdf5.rows ends with row {}, but the file has {}", path_, keys_.rows[1],
                                  counted(all, "row")));
    rows_ = {keys_.rows[0], keys_.rows[1] - keys_.rows[0]};
  }
  if (keys_.split.empty()) return;
  std::vector<std::string> known;
  const std::string& samples = keys_.samples.front();
  for (const h5::NamedRows& named : file_.named_rows()) {
    if (named.dataset != (samples.starts_with('/') ? samples.substr(1) : samples)) continue;
    if (named.part != keys_.split) {
      known.push_back(named.part);
      continue;
    }
    if (named.indexed)
      throw DataError(
          fmt::format("{}: part '{}' of the attribute 'split' is given by indices, which are not supported; "
                      "use data.hdf5.rows",
                      path_, named.part));
    if (named.first < 0 || named.end > all || named.first >= named.end)
      throw DataError(fmt::format("{}: part '{}' of the attribute 'split' is rows {} to {} of {}", path_, named.part,
                                  named.first, named.end, all));
    rows_ = {named.first, named.end - named.first};
    return;
  }
  throw DataError(fmt::format("{}: {}", path_,
                              known.empty() ? "has no attribute 'split' as Fuel writes it; use data.hdf5.rows"
                                            : unknown_name("data.hdf5.split", keys_.split, known)));
}

// The last records have no label: it would lie behind the rows.
void ForeignFile::leave_room_for_lead() {
  if (keys_.lead == 0) return;
  if (keys_.lead >= rows_.count)
    throw DataError(fmt::format("{}: has {}, too few for data.hdf5.lead = {}, which may be at most {} here", path_,
                                counted(rows_.count, "row"), keys_.lead, rows_.count - 1));
  rows_.count -= keys_.lead;
}

bool ForeignFile::holds_bytes() const {
  return keys_.transform == Transform::none && std::all_of(sources_.begin(), sources_.end(), [](const Source& source) {
           return source.holds_bytes() && source.info.stored_as.empty();
         });
}

Shape ForeignFile::sample_shape() const {
  if (sequence_) return {shape_[0], shape_[1]};
  const auto has = [&](char letter) { return keys_.axes.find(letter) != std::string::npos; };
  if (has('D')) return {shape_[0], shape_[1], shape_[2], shape_[3]};
  if (has('W') && !has('H')) return {shape_[0], shape_[3]};
  return {shape_[0], shape_[2], shape_[3]};
}

std::string ForeignFile::stored_as() const { return stored_text(sources_.front().info); }

std::vector<h5::DatasetInfo> ForeignFile::datasets() const {
  std::vector<h5::DatasetInfo> all;
  for (const Source& source : sources_) all.push_back(source.info);
  return all;
}

}  // namespace echelon::inline data
