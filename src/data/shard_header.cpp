// SPDX-License-Identifier: Apache-2.0
#include "data/shard_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/nearest.hpp"
#include "data/encoded.hpp"
#include "data/format.hpp"
#include "data/text_list.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {
namespace {

namespace format = sample_format;
constexpr std::array kKinds = {DataKind::samples, DataKind::text, DataKind::sequences, DataKind::pairs};

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}", path, what));
}

std::vector<double> per_channel(const h5::Reader& reader, const char* name, std::int64_t channels, double fallback) {
  if (!reader.has_attribute(name)) return std::vector<double>(static_cast<std::size_t>(channels), fallback);
  std::vector<double> values = reader.attribute_doubles(name);
  if (values.size() != static_cast<std::size_t>(channels))
    fail(reader.path(), fmt::format("attribute '{}' has {} values for {} channels", name, values.size(), channels));
  for (const double value : values)
    if (!std::isfinite(value)) fail(reader.path(), fmt::format("attribute '{}' holds {}", name, value));
  return values;
}

bool is_real(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

// Reads all floats as f32.
void take_type(const h5::DatasetInfo& info, Dataset& dataset) {
  dataset.stored = info.dtype == DType::f64 ? DType::f32 : info.dtype;
  dataset.stored_as = stored_text(info);
}

DataKind read_kind(const h5::Reader& reader) {
  if (!reader.has_attribute(format::kKind)) return DataKind::samples;
  const std::string name = reader.attribute_text(format::kKind);
  std::vector<std::string> known;
  for (const DataKind kind : kKinds) {
    if (name == name_of(kind)) return kind;
    known.emplace_back(name_of(kind));
  }
  fail(reader.path(), unknown_name("kind", name, known));
}

void check_format(const h5::Reader& reader) {
  const std::string& path = reader.path();
  if (reader.has_attribute(format::kFormat)) {
    const std::string name = reader.attribute_text(format::kFormat);
    if (name != format::kName) fail(path, fmt::format("has format '{}', expected '{}'", name, format::kName));
  }
  if (reader.has_attribute(format::kFormatVersion)) {
    const std::int64_t version = reader.attribute_int(format::kFormatVersion);
    if (version != format::kVersion)
      fail(path, fmt::format("has version {}, but this program reads version {}", version, format::kVersion));
  }
}

void read_classes(const h5::Reader& reader, Dataset& dataset) {
  const std::string& path = reader.path();
  dataset.classes = reader.attribute_int(format::kClasses);
  if (dataset.classes < 1 || dataset.classes > format::kMostClasses)
    fail(path, fmt::format("attribute 'classes' is {}, must be 1 to {}", dataset.classes, format::kMostClasses));
  if (reader.has_attribute(format::kClassNames))
    dataset.class_names = reader.attribute_texts(format::kClassNames);
  else if (reader.has(format::kClassNames))
    dataset.class_names = read_text_list(reader, format::kClassNames);
  // HDF5 allows any bytes; from here on names can be shown, written and compared with those of a checkpoint.
  for (std::string& name : dataset.class_names) name = escaped_for_terminal(name);
  if (!dataset.class_names.empty() && dataset.class_names.size() != static_cast<std::size_t>(dataset.classes))
    fail(path, fmt::format("has {} class_names for {} classes", dataset.class_names.size(), dataset.classes));
}

void read_normalisation(const h5::Reader& reader, Dataset& dataset, std::int64_t channels) {
  const std::string& path = reader.path();
  dataset.scale = dataset.stored == DType::u8 ? 1.0 / 255 : 1.0;
  if (reader.has_attribute(format::kScale)) dataset.scale = reader.attribute_double(format::kScale);
  if (!std::isfinite(dataset.scale) || dataset.scale == 0)
    fail(path, fmt::format("attribute 'scale' is {}", dataset.scale));
  dataset.mean = per_channel(reader, format::kMean, channels, 0.0);
  dataset.std = per_channel(reader, format::kStd, channels, 1.0);
  for (const double value : dataset.std)
    if (value <= 0) fail(path, fmt::format("attribute 'std' holds {}, must be above 0", value));
  for (std::size_t c = 0; c < dataset.std.size(); ++c)  // checks the values as the model uses them
    for (const double factor : {dataset.scale / dataset.std[c], dataset.mean[c] / dataset.std[c]})
      if (!std::isfinite(static_cast<float>(factor)))
        fail(path, fmt::format("attributes 'scale' {:g}, 'mean' {:g} and 'std' {:g} of channel {} give values that do "
                               "not fit into a 32-bit float",
                               dataset.scale, dataset.mean[c], dataset.std[c], c));
}

// Reads classes (N) or (N, ..) of integers, which need the attribute 'classes', or numbers (N) or (N, ..) of floats,
// which must not have it. If labels are optional and absent, the attribute may exist or not.
h5::DatasetInfo read_labels(const h5::Reader& reader, Dataset& dataset, std::int64_t samples, Labels expected) {
  const std::string& path = reader.path();
  if (!reader.has(format::kLabels)) {
    if (expected == Labels::needed) fail(path, "dataset 'labels' is missing; only `echelon predict` works without it");
    dataset.labelled = false;
    if (reader.has_attribute(format::kClasses)) read_classes(reader, dataset);
    return {};
  }
  const h5::DatasetInfo labels = reader.info(format::kLabels);
  const bool numbers = is_real(labels.dtype), places = dataset.kind == DataKind::samples;
  const int rank = labels.shape.rank();
  if (rank < 1 || (numbers ? rank > 2 && !places : rank == 2 || (rank > 2 && !places)))
    fail(path, fmt::format("dataset 'labels' has shape {}, must be (N){}", labels.shape.text(),
                           places ? (numbers ? " or (N, ..)" : " or (N, H, W)") : (numbers ? " or (N, K)" : "")));
  if (labels.shape.row_elems() == 0)
    fail(path, fmt::format("dataset 'labels' has shape {}, which holds no label", labels.shape.text()));
  const char* what = dataset.step_labels ? "steps" : "samples";
  if (samples != labels.shape[0]) fail(path, fmt::format("holds {} {} but {} labels", samples, what, labels.shape[0]));
  reader.require_written(format::kLabels);
  if (numbers && reader.has_attribute(format::kClasses))
    fail(path,
         "dataset 'labels' holds floats, which are regression targets, but there is an attribute 'classes': write the "
         "labels of classes as integers (y.astype(\"i4\")), or targets without that attribute");
  dataset.label_shape = labels.shape.without_front();
  if (!numbers) read_classes(reader, dataset);
  return labels;
}

void read_samples(const h5::Reader& reader, Dataset& dataset, Labels expected) {
  const std::string& path = reader.path();
  const h5::DatasetInfo samples = reader.info(format::kSamples);
  if (samples.shape.rank() < 3 || samples.shape.rank() > 5)
    fail(path, fmt::format("dataset 'samples' has shape {}, must be (N, C, H, W), (N, C, D, H, W) of volumes or (N, C, "
                           "W) of series",
                           samples.shape.text()));
  if (samples.dtype != DType::u8 && !is_real(samples.dtype))
    fail(path, fmt::format("dataset 'samples' is {}, must be 8-bit unsigned integers or floats: write x.astype(\"f4\")",
                           samples.stored_as.empty() ? "a 32-bit signed integer" : samples.stored_as));
  const h5::DatasetInfo labels = read_labels(reader, dataset, samples.shape[0], expected);
  if (samples.shape.elems() == 0) fail(path, fmt::format("holds no sample: shape {}", samples.shape.text()));
  reader.require_written(format::kSamples);
  dataset.sample_shape = samples.shape.without_front();
  take_type(samples, dataset);
  read_normalisation(reader, dataset, dataset.sample_shape[0]);
  const bool apart = samples.has_rows_apart() && has_records_apart(labels);
  dataset.shards.push_back({.path = path,
                            .samples = samples.shape[0],
                            .first = 0,
                            .chunk_rows = records_together(samples),
                            .alone = apart && dataset.record_bytes() >= kAloneBytes,
                            .bytes = samples.stored_bytes + labels.stored_bytes,
                            .chunk = samples.chunk,
                            .deflate = samples.deflate,
                            .checksums = samples.checksum && (labels.checksum || !dataset.labelled)});
}

void read_encoded(const h5::Reader& reader, Dataset& dataset, Labels expected) {
  const std::string& path = reader.path();
  const std::string colours = reader.attribute_text(format::kEncoded);
  if (colours != "rgb" && colours != "grey")
    fail(path, fmt::format("attribute 'encoded' is '{}', must be rgb or grey", colours));
  const std::vector<std::int64_t> starts = encoded_starts(reader);
  const auto samples = static_cast<std::int64_t>(starts.size()) - 1;
  const h5::DatasetInfo bytes = reader.info(format::kBytes);
  const h5::DatasetInfo labels = read_labels(reader, dataset, samples, expected);
  dataset.encoded = true;
  std::vector<std::uint8_t> first(static_cast<std::size_t>(starts[1]));
  reader.read_rows(format::kBytes, 0, starts[1], first.data(), DType::u8);
  dataset.sample_shape = encoded_shape(
      path, 0, std::string_view(reinterpret_cast<const char*>(first.data()), first.size()), colours == "rgb" ? 3 : 1);
  dataset.stored = DType::u8;
  read_normalisation(reader, dataset, dataset.sample_shape[0]);
  dataset.shards.push_back({.path = path,
                            .samples = samples,
                            .first = 0,
                            .chunk_rows = encoded_together(bytes.stored_bytes, samples),
                            .bytes = bytes.stored_bytes + labels.stored_bytes,
                            .chunk = bytes.chunk,
                            .deflate = bytes.deflate,
                            .checksums = bytes.checksum && (labels.checksum || !dataset.labelled)});
}

h5::DatasetInfo tokens_of(const h5::Reader& reader, const char* name) {
  const h5::DatasetInfo tokens = reader.info(name);
  if (tokens.shape.rank() != 1 || (tokens.dtype != DType::u8 && tokens.dtype != DType::i32))
    fail(reader.path(), fmt::format("dataset '{}' is {} of {}, must be (tokens) of integers", name, tokens.shape.text(),
                                    name_of(tokens.dtype)));
  reader.require_written(name);
  return tokens;
}

// Returns the prefix sums of the lengths in a dataset, which must add up to `rows`.
Starts read_starts(const h5::Reader& reader, const char* name, std::int64_t rows, std::int64_t least) {
  const h5::DatasetInfo info = reader.info(name);
  if (info.shape.rank() != 1 || is_real(info.dtype))
    fail(reader.path(), fmt::format("dataset '{}' is {} of {}, must be (N) of integers", name, info.shape.text(),
                                    name_of(info.dtype)));
  if (info.shape[0] == 0) fail(reader.path(), "holds no sequence");
  reader.require_written(name);
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(info.shape[0]));
  reader.read_all(name, lengths.data(), DType::i32);
  auto starts = std::make_shared<std::vector<std::int64_t>>(1, 0);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < least)
      fail(reader.path(),
           fmt::format("sequence {} has length {} in '{}', must be {} or more", i, lengths[i], name, least));
    starts->push_back(starts->back() + lengths[i]);
  }
  if (starts->back() != rows)
    fail(reader.path(), fmt::format("'{}' add up to {} steps, but {} are stored", name, starts->back(), rows));
  return starts;
}

void add_shard(const h5::Reader& reader, Dataset& dataset, const h5::DatasetInfo& rows, std::int64_t samples) {
  std::uint64_t bytes = 0;
  bool checksums = true;
  for (const h5::DatasetInfo& info : reader.datasets()) {
    if (info.name != format::kVocabulary && info.name != format::kTargetVocabulary) bytes += info.stored_bytes;
    checksums &= info.checksum;
  }
  take_type(rows, dataset);
  dataset.shards.push_back({.path = reader.path(),
                            .samples = samples,
                            .first = 0,
                            .chunk_rows = std::min<std::int64_t>(samples, 128),
                            .bytes = bytes,
                            .chunk = rows.chunk,
                            .deflate = rows.deflate,
                            .checksums = checksums});
}

void read_text(const h5::Reader& reader, Dataset& dataset) {
  const h5::DatasetInfo tokens = tokens_of(reader, format::kTokens);
  dataset.vocabulary = Vocabulary::read(reader, format::kVocabulary);
  dataset.classes = dataset.vocabulary.size();
  dataset.sample_shape = {0};
  add_shard(reader, dataset, tokens, 0);
  dataset.shards[0].tokens = tokens.shape[0];
}

void read_sequences(const h5::Reader& reader, Dataset& dataset, Labels expected) {
  const bool of_tokens = reader.has(format::kTokens);
  h5::DatasetInfo rows;
  if (of_tokens) {
    rows = tokens_of(reader, format::kTokens);
    dataset.vocabulary = Vocabulary::read(reader, format::kVocabulary);
    dataset.sample_shape = {0};
  } else {
    rows = reader.info(format::kValues);
    if (rows.shape.rank() != 2 || !is_real(rows.dtype) || rows.shape[1] < 1)
      fail(reader.path(), fmt::format("dataset 'values' is {} of {}, must be (steps, features) of floats",
                                      rows.shape.text(), name_of(rows.dtype)));
    reader.require_written(format::kValues);
    dataset.sample_shape = {0, rows.shape[1]};
  }
  dataset.starts = read_starts(reader, format::kLengths, rows.shape[0], 1);
  const std::int64_t samples = std::ssize(*dataset.starts) - 1;
  const std::string of = reader.has_attribute(format::kLabelsOf) ? reader.attribute_text(format::kLabelsOf) : "samples";
  if (of != "samples" && of != "steps")
    fail(reader.path(), fmt::format("attribute 'labels_of' is '{}', must be samples or steps", of));
  dataset.step_labels = of == "steps";
  read_labels(reader, dataset, dataset.step_labels ? rows.shape[0] : samples, expected);
  add_shard(reader, dataset, rows, samples);
  if (!of_tokens) read_normalisation(reader, dataset, rows.shape[1]);
}

void read_pairs(const h5::Reader& reader, Dataset& dataset) {
  const h5::DatasetInfo tokens = tokens_of(reader, format::kTokens);
  const h5::DatasetInfo target = tokens_of(reader, format::kTargetTokens);
  dataset.vocabulary = Vocabulary::read(reader, format::kVocabulary);
  dataset.target_vocabulary = Vocabulary::read(reader, format::kTargetVocabulary);
  for (const char* needed : {kStartToken, kEndToken})
    if (dataset.target_vocabulary.find(needed) < 0)
      fail(reader.path(), fmt::format("dataset 'target_vocabulary' lacks the token '{}'", needed));
  dataset.classes = dataset.target_vocabulary.size();
  dataset.sample_shape = {0};
  dataset.starts = read_starts(reader, format::kLengths, tokens.shape[0], 1);
  dataset.target_starts = read_starts(reader, format::kTargetLengths, target.shape[0], 0);
  if (dataset.starts->size() != dataset.target_starts->size())
    fail(reader.path(), fmt::format("holds {} sequences but {} targets", dataset.starts->size() - 1,
                                    dataset.target_starts->size() - 1));
  add_shard(reader, dataset, tokens, static_cast<std::int64_t>(dataset.starts->size()) - 1);
}

}  // namespace

std::int64_t records_together(const h5::DatasetInfo& info) {
  constexpr std::int64_t kLeast = 64, kMost = 256, kUsual = 128;
  constexpr double kMostBytes = 256 << 20;
  const std::int64_t samples = info.shape[0];
  std::int64_t rows = info.chunk.rank() == 0 ? kUsual : info.chunk[0];
  if (rows < kLeast) rows *= (kLeast + rows - 1) / rows;
  if (rows > kMost && !info.deflate && !info.checksum) rows = kMost;
  // Large samples are read in smaller blocks, as many whole chunks as fit.
  const double row_bytes = static_cast<double>(info.shape.row_elems()) * static_cast<double>(size_of(info.dtype));
  const std::int64_t stored = info.chunk.rank() == 0 ? 1 : info.chunk[0];
  const auto fitting = static_cast<std::int64_t>(kMostBytes / std::max(row_bytes, 1.0)) / stored * stored;
  rows = std::min(rows, std::max(fitting, stored));
  return std::clamp<std::int64_t>(rows, 1, samples);
}

std::string_view name_of(DataKind kind) {
  switch (kind) {
    case DataKind::samples: return "samples";
    case DataKind::text: return "text";
    case DataKind::sequences: return "sequences";
    case DataKind::pairs: return "pairs";
  }
  return "?";
}

Dataset read_shard(const std::string& path, Labels labels) try {
  const h5::Reader reader(path);
  check_format(reader);
  Dataset dataset;
  dataset.kind = read_kind(reader);
  switch (dataset.kind) {
    case DataKind::samples:
      reader.has_attribute(format::kEncoded) ? read_encoded(reader, dataset, labels)
                                             : read_samples(reader, dataset, labels);
      break;
    case DataKind::text: read_text(reader, dataset); break;
    case DataKind::sequences: read_sequences(reader, dataset, labels); break;
    case DataKind::pairs: read_pairs(reader, dataset); break;
  }
  return dataset;
} catch (const std::bad_alloc&) {
  throw MemoryError(fmt::format("{}: out of memory while its lengths and vocabulary were read", path));
}

std::string not_a_shard(const std::string& path) {
  const h5::Reader file(path);
  if (file.has_attribute(format::kFormat) || file.has_attribute(format::kKind)) return {};
  if (file.has_attribute(format::kClasses) && file.has(format::kLabels)) return {};
  try {
    (void)read_shard(path, Labels::optional);
    return {};
  } catch (const DataError& error) {
    return error.what();
  }
}

}  // namespace echelon::inline data
