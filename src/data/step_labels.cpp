// SPDX-License-Identifier: Apache-2.0
#include "data/step_labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"

namespace echelon::inline data {
namespace {

std::int64_t start_of(const Dataset& dataset, std::int64_t id) {
  return (*dataset.starts)[static_cast<std::size_t>(id)];
}

// Reads with read(first, count, values), rows of a shard or records of another file.
template <class T, class Read>
void read_steps(const Dataset& dataset, const Chunk& chunk, std::vector<T>& values, const Read& read) {
  const Shard& shard = dataset.shards[chunk.file];
  const std::int64_t each = dataset.label_shape.elems();
  std::int64_t steps = start_of(dataset, chunk.end) - start_of(dataset, chunk.begin);
  if (dataset.hdf5) {
    const ChunkRecords records = records_in(dataset, chunk);
    values.resize(static_cast<std::size_t>(records.count * dataset.stored_steps * each));
    read(records.first, records.count, values.data());
    steps = keep_steps(dataset, chunk, static_cast<std::size_t>(each) * sizeof(T), values.data());
  } else {
    values.resize(static_cast<std::size_t>(steps * each));
    read(start_of(dataset, chunk.begin) - start_of(dataset, shard.first), steps, values.data());
  }
  values.resize(static_cast<std::size_t>(steps * each));
}

}  // namespace

ChunkRecords records_in(const Dataset& dataset, const Chunk& chunk) {
  const std::int64_t first = dataset.series_of(chunk.begin);
  return {.first = first - dataset.series_of(dataset.shards[chunk.file].first),
          .count = dataset.series_of(chunk.end - 1) + 1 - first};
}

std::int64_t keep_steps(const Dataset& dataset, const Chunk& chunk, std::size_t bytes, void* rows) {
  auto* const all = static_cast<std::uint8_t*>(rows);
  const std::int64_t first = dataset.series_of(chunk.begin);
  std::int64_t kept = 0;
  for (std::int64_t id = chunk.begin; id < chunk.end; ++id) {
    const std::int64_t series = dataset.series_of(id);
    const std::int64_t from = (series - first) * dataset.stored_steps + start_of(dataset, id) -
                              start_of(dataset, dataset.first_window(series));
    const std::int64_t count = start_of(dataset, id + 1) - start_of(dataset, id);
    std::memmove(all + static_cast<std::size_t>(kept) * bytes, all + static_cast<std::size_t>(from) * bytes,
                 static_cast<std::size_t>(count) * bytes);
    kept += count;
  }
  return kept;
}

std::string step_text(const Dataset& dataset, const Chunk& chunk, std::int64_t at) {
  const std::int64_t step = start_of(dataset, chunk.begin) + at;
  const std::int64_t id =
      std::upper_bound(dataset.starts->begin(), dataset.starts->end(), step) - dataset.starts->begin() - 1;
  const std::int64_t series = dataset.series_of(id);
  return fmt::format("record {}, step {}", series - dataset.series_of(dataset.shards[chunk.file].first),
                     step - start_of(dataset, dataset.first_window(series)));
}

void read_step_labels(const Dataset& dataset, const SampleFile& file, Chunk& chunk) {
  if (dataset.has_numbers())
    read_steps(dataset, chunk, chunk.numbers,
               [&](std::int64_t first, std::int64_t count, float* dst) { file.read_numbers(first, count, dst); });
  else
    read_steps(dataset, chunk, chunk.labels, [&](std::int64_t first, std::int64_t count, std::int32_t* dst) {
      file.read_classes(first, count, dst);
    });
}

void load_step_labels(const Dataset& dataset, const SampleFile& file, Chunk& chunk) {
  read_step_labels(dataset, file, chunk);
  const std::string& path = dataset.shards[chunk.file].path;
  const std::int64_t each = dataset.label_shape.elems();
  for (std::int64_t i = 0; i < std::ssize(chunk.labels); ++i) {
    const std::int32_t label = chunk.labels[static_cast<std::size_t>(i)];
    if ((label >= 0 && label < dataset.classes) || dataset.label_weights.ignores(label)) continue;
    throw DataError(
        fmt::format("{}: {} of '{}' has label {}, must be 0 to {} ({} classes); model.ignore_label = {} leaves such "
                    "steps out",
                    path, step_text(dataset, chunk, i / each), dataset.labels_name(), label, dataset.classes - 1,
                    dataset.classes, label));
  }
  require_numbers(dataset, path, chunk.numbers, [&](std::int64_t i) { return step_text(dataset, chunk, i / each); });
}

}  // namespace echelon::inline data
