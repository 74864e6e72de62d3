// SPDX-License-Identifier: Apache-2.0
#include "data/chunk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "base/error.hpp"
#include "data/finite.hpp"
#include "data/format.hpp"
#include "data/label_counts.hpp"
#include "data/sample_file.hpp"
#include "data/step_labels.hpp"

namespace echelon::inline data {
namespace {

namespace format = sample_format;

// The rows of one dataset that a chunk needs.
struct Rows {
  const char* name;
  std::int64_t first, count;  // range within the file
  std::int64_t all;           // rows of the whole dataset when the set was opened
};

void require_unchanged(const h5::Reader& reader, const Rows& rows) {
  const Shape now = reader.info(rows.name).shape;
  if (now.rank() == 0 || now[0] != rows.all)
    throw DataError(fmt::format("{}: changed while the run read it: the shape of {} is now {}", reader.path(),
                                rows.name, now.text()));
}

std::int64_t stretch(const Starts& starts, std::int64_t from, std::int64_t to) {
  return (*starts)[static_cast<std::size_t>(to)] - (*starts)[static_cast<std::size_t>(from)];
}

// Returns the rows of records [begin, end) of a shard, from `starts`.
Rows rows_of(const char* name, const Starts& starts, const Shard& shard, const Chunk& chunk) {
  return {.name = name,
          .first = stretch(starts, shard.first, chunk.begin),
          .count = stretch(starts, chunk.begin, chunk.end),
          .all = stretch(starts, shard.first, shard.first + shard.samples)};
}

void read_tokens(const h5::Reader& reader, const Rows& rows, const Vocabulary& vocabulary, std::int32_t* dst) {
  require_unchanged(reader, rows);
  reader.read_rows(rows.name, rows.first, rows.count, dst, DType::i32);
  for (std::int64_t i = 0; i < rows.count; ++i)
    if (dst[i] < 0 || dst[i] >= vocabulary.size())
      throw DataError(fmt::format("{}: {}[{}] is {}, must be 0 to {} (the vocabulary has {})", reader.path(), rows.name,
                                  rows.first + i, dst[i], vocabulary.size() - 1, vocabulary.size()));
}

}  // namespace

void require_classes(const Dataset& dataset, const std::string& path, std::int64_t first,
                     const std::vector<std::int32_t>& labels) {
  std::uint32_t greatest = 0;  // a pass at memory speed; negative labels are the greatest
  for (const std::int32_t label : labels) greatest = std::max(greatest, static_cast<std::uint32_t>(label));
  if (greatest < dataset.classes) return;
  const auto is_class = [&](std::int32_t label) { return label >= 0 && label < dataset.classes; };
  const std::int64_t each = dataset.label_shape.elems();
  for (std::int64_t i = 0; i < std::ssize(labels); ++i) {
    const std::int32_t label = labels[static_cast<std::size_t>(i)];
    if (is_class(label) || dataset.label_weights.ignores(label)) continue;
    if (!dataset.has_dense_classes()) require_class(path, first + i, label, dataset.classes);
    std::vector<std::int64_t> place;
    for (std::int64_t rest = i % each, inner = each, axis = 0; axis < dataset.label_shape.rank(); ++axis) {
      inner /= dataset.label_shape[static_cast<int>(axis)];
      place.push_back(rest / inner + (axis == dataset.slab.labels.axis ? dataset.slab.labels.begin : 0));
      rest %= inner;
    }
    throw DataError(fmt::format(
        "{}: record {} of '{}' has label {} at ({}), must be 0 to {} ({} classes); model.ignore_label = {} leaves such "
        "places out",
        path, first + i / each, dataset.labels_name(), label, fmt::join(place, ", "), dataset.classes - 1,
        dataset.classes, label));
  }
}

void require_numbers(const Dataset& dataset, const std::string& path, std::int64_t first,
                     const std::vector<float>& numbers) {
  const std::int64_t each = dataset.label_shape.elems();
  require_numbers(dataset, path, numbers, [&](std::int64_t i) { return fmt::format("record {}", first + i / each); });
}

void require_numbers(const Dataset& dataset, const std::string& path, const std::vector<float>& numbers,
                     const std::function<std::string(std::int64_t)>& place) {
  if (std::isinf(dataset.least_label) && std::isinf(dataset.most_label) &&
      all_finite(numbers.data(), std::ssize(numbers)))
    return;
  for (std::int64_t i = 0; i < std::ssize(numbers); ++i) {
    const float label = numbers[static_cast<std::size_t>(i)];
    if (!std::isfinite(label))
      throw DataError(fmt::format("{}: {} has a label that is not a finite number", path, place(i)));
    if (label < dataset.least_label || label > dataset.most_label)
      throw DataError(fmt::format(
          "{}: {} has the label {:g}; model.loss = \"{}, {:g} to {:g}: scale the labels, or train "
          "with \"mse\"",
          path, place(i), label, dataset.least_label < 0 ? "hinge\" takes no and yes" : "bce\" takes probabilities",
          dataset.least_label, dataset.most_label));
  }
}

namespace {

void read_numbers(const Dataset& dataset, const SampleFile& file, const Shard& shard, Chunk& chunk) {
  const std::int64_t first = chunk.begin - shard.first, count = chunk.end - chunk.begin;
  chunk.numbers.resize(static_cast<std::size_t>(count * dataset.label_shape.elems()));
  file.read_numbers(first, count, chunk.numbers.data());
  require_numbers(dataset, shard.path, first, chunk.numbers);
}

// A record has one weight, for all windows of it.
void read_weights(const Dataset& dataset, const SampleFile& file, Chunk& chunk) {
  const ChunkRecords records = records_in(dataset, chunk);
  std::vector<float> weights(static_cast<std::size_t>(records.count));
  file.read_weights(records.first, records.count, weights.data());
  const std::int64_t first = dataset.series_of(chunk.begin);
  chunk.weights.clear();
  for (std::int64_t id = chunk.begin; id < chunk.end; ++id)
    chunk.weights.push_back(weights[static_cast<std::size_t>(dataset.series_of(id) - first)]);
}

void read_labels(const Dataset& dataset, const SampleFile& file, const Shard& shard, Chunk& chunk) {
  if (dataset.weighted) read_weights(dataset, file, chunk);
  if (!dataset.labelled) return;
  if (dataset.step_labels) return load_step_labels(dataset, file, chunk);
  if (dataset.has_numbers()) return read_numbers(dataset, file, shard, chunk);
  const std::int64_t first = chunk.begin - shard.first, count = chunk.end - chunk.begin;
  chunk.labels.resize(static_cast<std::size_t>(count * dataset.label_shape.elems()));
  file.read_classes(first, count, chunk.labels.data());
  require_classes(dataset, shard.path, first, chunk.labels);
}

std::int32_t* token_memory(Chunk& chunk, std::int64_t count) {
  chunk.rows.resize(static_cast<std::size_t>(count) * sizeof(std::int32_t));
  return reinterpret_cast<std::int32_t*>(chunk.rows.data());
}

// Throws DataError if a value is not finite. `place`: from an index of a value, as "record 3".
template <class Place>
void require_finite(const Dataset& set, const Shard& shard, const char* dataset, const void* rows, std::int64_t count,
                    Place&& place) {
  const auto* values = static_cast<const float*>(rows);
  if (all_finite(values, count)) return;
  const auto* bad = std::find_if(values, values + count, [](float value) { return !std::isfinite(value); });
  throw DataError(fmt::format(
      "{}: {} of '{}' holds {}; every feature must be a finite number{}{}", shard.path, place(bad - values), dataset,
      *bad, set.hdf5 && std::isnan(*bad) ? " (data.hdf5.missing = \"mean\" replaces NaN and fill values)" : "",
      std::isinf(*bad) && set.stored_as.find("64-bit") != std::string::npos
          ? " that a 32-bit float holds (they are stored with 64 bits)"
          : ""));
}

// Samples of one shape: images, or sequences of one length in a file that is not a shard.
void load_samples(const Dataset& dataset, const SampleFile& file, const Shard& shard, Chunk& chunk) {
  const std::int64_t first = records_in(dataset, chunk).first, count = records_in(dataset, chunk).count;
  const std::int64_t then = dataset.records_of(shard);
  if (const std::int64_t now = file.samples(); now != then)
    throw DataError(
        fmt::format("{}: changed while the run read it: it now holds {} samples instead of {}", shard.path, now, then));
  if (dataset.encoded) return file.read_encoded(first, count, chunk.rows, chunk.ends);
  const std::int64_t row = dataset.sample_shape.row_elems();
  const std::int64_t elems = dataset.starts ? dataset.stored_steps * row : dataset.sample_shape.elems();
  if (chunk.elsewhere == nullptr) chunk.rows.resize(static_cast<std::size_t>(count * elems) * size_of(dataset.stored));
  void* const rows = chunk.elsewhere != nullptr ? chunk.elsewhere : chunk.rows.data();
  const bool finite = file.read_samples(first, count, rows, dataset.stored);
  std::int64_t values = count * elems;
  if (dataset.starts) {  // sequences are read whole, without what fills them up, and cut to T later
    const std::int64_t steps =
        keep_steps(dataset, chunk, static_cast<std::size_t>(row) * size_of(dataset.stored), chunk.rows.data());
    values = steps * row;
    chunk.rows.resize(static_cast<std::size_t>(values) * size_of(dataset.stored));
  }
  if (!finite)
    require_finite(dataset, shard, dataset.hdf5 ? dataset.hdf5->samples.front().c_str() : format::kSamples, rows,
                   values, [&](std::int64_t value) {
                     return dataset.starts ? step_text(dataset, chunk, value / row)
                                           : fmt::format("record {}", first + value / elems);
                   });
}

void load_text(const Dataset& dataset, const h5::Reader& reader, const Shard& shard, Chunk& chunk) {
  const std::int64_t steps = dataset.length();
  const Rows rows{format::kTokens, (chunk.begin - shard.first) * steps, (chunk.end - chunk.begin) * steps + 1,
                  shard.tokens};
  read_tokens(reader, rows, dataset.vocabulary, token_memory(chunk, rows.count));
}

void load_sequences(const Dataset& dataset, const h5::Reader& reader, const Shard& shard, Chunk& chunk) {
  const bool of_tokens = dataset.vocabulary.size() > 0;
  const Rows rows = rows_of(of_tokens ? format::kTokens : format::kValues, dataset.starts, shard, chunk);
  if (of_tokens) return read_tokens(reader, rows, dataset.vocabulary, token_memory(chunk, rows.count));
  require_unchanged(reader, rows);
  chunk.rows.resize(static_cast<std::size_t>(rows.count * dataset.sample_shape.row_elems()) * sizeof(float));
  reader.read_rows(rows.name, rows.first, rows.count, chunk.rows.data(), DType::f32);
  const std::int64_t features = dataset.sample_shape.row_elems();
  require_finite(dataset, shard, rows.name, chunk.rows.data(), rows.count * features,
                 [&](std::int64_t value) { return step_text(dataset, chunk, value / features); });
}

void load_targets(const Dataset& dataset, const h5::Reader& reader, const Shard& shard, Chunk& chunk) {
  const Rows rows = rows_of(format::kTargetTokens, dataset.target_starts, shard, chunk);
  chunk.targets.resize(static_cast<std::size_t>(rows.count));
  read_tokens(reader, rows, dataset.target_vocabulary, chunk.targets.data());
}

}  // namespace

void load_chunk(const Dataset& dataset, const SampleFile& file, Chunk& chunk) try {
  const Shard& shard = dataset.shards[chunk.file];
  const h5::Reader& reader = file.reader();
  switch (dataset.kind) {
    case DataKind::samples: load_samples(dataset, file, shard, chunk); return read_labels(dataset, file, shard, chunk);
    case DataKind::text: return load_text(dataset, reader, shard, chunk);
    case DataKind::sequences:
      dataset.hdf5 ? load_samples(dataset, file, shard, chunk) : load_sequences(dataset, reader, shard, chunk);
      return read_labels(dataset, file, shard, chunk);
    case DataKind::pairs:
      load_sequences(dataset, reader, shard, chunk);
      return load_targets(dataset, reader, shard, chunk);
  }
} catch (const std::bad_alloc&) {
  throw MemoryError(fmt::format("{}: out of memory for the {} records that are read together", file.reader().path(),
                                chunk.end - chunk.begin));
}

Record Chunk::record(const Dataset& dataset, std::int64_t id) const {
  const auto inside = static_cast<std::size_t>(id - begin);
  Record record{.file = file, .index = id - dataset.shards[file].first};
  const std::int64_t before = dataset.step_labels ? stretch(dataset.starts, begin, id) : id - begin;
  if (!labels.empty()) record.labels = labels.data() + before * dataset.label_shape.elems();
  if (!weights.empty()) record.weight = weights[inside];
  if (!numbers.empty()) record.numbers = numbers.data() + before * dataset.label_shape.elems();
  if (dataset.encoded) {
    const std::size_t first = inside == 0 ? 0 : ends[inside - 1];
    record.sample = rows.data() + first;
    record.length = static_cast<std::int64_t>(ends[inside] - first);
    return record;
  }
  std::size_t skipped = 0;  // rows before the part
  std::size_t row_bytes = sizeof(std::int32_t);
  if (dataset.starts) {
    skipped = static_cast<std::size_t>(stretch(dataset.starts, begin, id));
    row_bytes *= static_cast<std::size_t>(dataset.sample_shape.row_elems());
    record.length = stretch(dataset.starts, id, id + 1);
  } else if (dataset.kind == DataKind::text) {
    skipped = inside * static_cast<std::size_t>(dataset.length());
  } else {
    skipped = inside;
    row_bytes = static_cast<std::size_t>(dataset.sample_shape.elems()) * size_of(dataset.stored);
  }
  record.sample = (elsewhere != nullptr ? elsewhere : rows.data()) + skipped * row_bytes;
  if (dataset.target_starts) {
    record.target = targets.data() + stretch(dataset.target_starts, begin, id);
    record.target_length = stretch(dataset.target_starts, id, id + 1);
  }
  return record;
}

}  // namespace echelon::inline data
