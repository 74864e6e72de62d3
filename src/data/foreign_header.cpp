// SPDX-License-Identifier: Apache-2.0
#include "data/foreign_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/nearest.hpp"
#include "data/encoded.hpp"
#include "data/foreign_file.hpp"
#include "data/foreign_labels.hpp"
#include "data/format.hpp"
#include "data/shard_header.hpp"

namespace echelon::inline data {
namespace {

// The keys with the normalisation that the file and the statistics gave.
std::shared_ptr<const Hdf5Config> resolved(const Hdf5Config& keys, const ForeignFile& file) {
  auto found = std::make_shared<Hdf5Config>(keys);
  found->statistics.clear();
  found->statistics_of.clear();
  found->range.clear();
  found->scale = file.scale();
  found->mean = file.mean();
  found->std = file.std();
  return found;
}

void take_labels(const ForeignLabels& file, const Hdf5Config& keys, Dataset& set) {
  set.labelled = file.exist();
  set.weighted = file.weighted();
  set.classes = set.labelled ? file.classes() : keys.classes;
  set.label_shape = file.shape();
  set.step_labels = keys.label_form == LabelForm::steps;
  for (const std::string& name : keys.class_names) set.class_names.push_back(escaped_for_terminal(name));
  if (!set.class_names.empty() && std::ssize(set.class_names) != set.classes)
    throw ConfigError(
        fmt::format("data.hdf5.class_names has {} names for {} classes", set.class_names.size(), set.classes));
}

}  // namespace

namespace {

// Reads how many steps the records have; without data.hdf5.lengths all have as many as are stored.
Starts starts_of(const ForeignFile& file, const Hdf5Config& keys) {
  const RowRange rows = file.rows();
  const std::int64_t stored = file.sample_shape()[0];
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(rows.count), static_cast<std::int32_t>(stored));
  if (!keys.lengths.empty()) {
    if (!file.file().has(keys.lengths))
      throw DataError(fmt::format("{}: {}", file.path(), unknown_name("dataset", keys.lengths, file.file().names())));
    const std::int64_t all = file.datasets().front().shape[0];
    if (const Shape shape = file.file().info(keys.lengths).shape; shape != Shape{all})
      fail_foreign(file.path(), keys.lengths,
                   fmt::format("has shape {}, must be ({}), the steps of each series", shape.text(), all));
    file.file().read_rows(keys.lengths, rows.first, rows.count, lengths.data(), DType::i32);
  }
  auto starts = std::make_shared<std::vector<std::int64_t>>(1, 0);
  for (const std::int32_t steps : lengths) {
    if (steps < 1 || steps > stored)
      fail_foreign(file.path(), keys.lengths,
                   fmt::format("has {} for record {}, must be 1 to {}, the stored steps", steps,
                               std::ssize(*starts) - 1, stored));
    starts->push_back(starts->back() + steps);
  }
  return starts;
}

}  // namespace

Dataset read_foreign(const std::string& path, Labels expected, const Hdf5Config& keys) {
  const ForeignFile file(path, path, keys);
  const ForeignLabels labels(file, keys, expected);
  if (!labels.exist() && expected == Labels::needed)
    throw ConfigError(fmt::format("{}: [data.hdf5] names no labels; only `echelon predict` works without them", path));
  Dataset set;
  set.kind = file.is_sequence() ? DataKind::sequences : DataKind::samples;
  set.sample_shape = file.sample_shape();
  set.encoded = file.is_encoded();
  set.stored = file.stored();
  set.stored_as = file.stored_as();
  set.hdf5 = resolved(keys, file);
  set.mean = file.mean();
  set.std = file.std();
  set.scale = file.scale();
  take_labels(labels, keys, set);
  const std::int64_t samples = file.rows().count;
  if (file.is_sequence()) {
    set.stored_steps = set.sample_shape[0];
    set.starts = starts_of(file, keys);
  }
  const std::vector<h5::DatasetInfo> sources = file.datasets();
  const h5::DatasetInfo& first = sources.front();
  Shard shard{.path = path,
              .samples = samples,
              .first = 0,
              .chunk_rows = file.is_one_sample() ? 1
                            : set.encoded        ? encoded_together(first.stored_bytes, first.shape[0])
                                                 : records_together(first),
              .bytes = labels.stored_bytes(),
              .chunk = first.chunk,
              .deflate = first.deflate,
              .checksums = labels.checksums()};
  for (const h5::DatasetInfo& source : sources) {
    shard.bytes += source.stored_bytes;
    shard.checksums &= source.checksum;
  }
  shard.chunk_rows = std::min(shard.chunk_rows, samples);
  shard.alone = set.kind == DataKind::samples && !set.encoded && set.record_bytes() >= kAloneBytes &&
                labels.has_records_apart() &&
                std::all_of(sources.begin(), sources.end(), [](const auto& source) { return source.has_rows_apart(); });
  set.shards.push_back(std::move(shard));
  return set;
}

}  // namespace echelon::inline data
