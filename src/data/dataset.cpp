// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "data/class_mix.hpp"
#include "data/foreign_file.hpp"
#include "data/foreign_header.hpp"
#include "data/format.hpp"
#include "data/location.hpp"
#include "data/shard_header.hpp"
#include "data/windows.hpp"

namespace echelon::inline data {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}", path, what));
}

// Throws DataError if the next file differs from the first.
void require_agreement(const Dataset& first, const Dataset& next) {
  const std::string& path = next.shards[0].path;
  const auto differ = [&](const char* what, const auto& here, const auto& there) {
    fail(path, fmt::format("has {} {}, but {} has {}", what, here, first.shards[0].path, there));
  };
  const auto list = [](const auto& values) { return fmt::format("[{}]", fmt::join(values, ", ")); };
  if (next.kind != first.kind) differ("data of kind", name_of(next.kind), name_of(first.kind));
  if (next.encoded != first.encoded)
    fail(path,
         fmt::format("holds {}, but {} does not", next.encoded ? "encoded images" : "pixels", first.shards[0].path));
  if (next.encoded ? next.sample_shape[0] != first.sample_shape[0] : next.sample_shape != first.sample_shape)
    differ("samples of shape", next.sample_shape.text(), first.sample_shape.text());
  if (next.stored != first.stored) differ("samples of type", name_of(next.stored), name_of(first.stored));
  if (next.labelled != first.labelled)
    fail(path, fmt::format("has {}, but {} has {}", next.labelled ? "labels" : "no labels", first.shards[0].path,
                           next.labelled ? "none" : "some"));
  if (next.classes != first.classes) differ("classes", next.classes, first.classes);
  if (next.step_labels != first.step_labels)
    differ("labels of", next.step_labels ? "steps" : "samples", first.step_labels ? "steps" : "samples");
  if (next.label_shape != first.label_shape)
    differ("labels of shape", next.label_shape.text(), first.label_shape.text());
  if (next.class_names != first.class_names) differ("class_names", list(next.class_names), list(first.class_names));
  if (next.scale != first.scale) differ("scale", next.scale, first.scale);
  if (next.mean != first.mean) differ("mean", list(next.mean), list(first.mean));
  if (next.std != first.std) differ("std", list(next.std), list(first.std));
  if (!(next.vocabulary == first.vocabulary) || !(next.target_vocabulary == first.target_vocabulary))
    fail(path, fmt::format("has a different vocabulary from {}", first.shards[0].path));
}

// Concatenates the prefix sums of all files; null if the files have no lengths.
Starts joined(const std::vector<Starts>& files) {
  if (!files.front()) return nullptr;
  auto all = std::make_shared<std::vector<std::int64_t>>(1, 0);
  for (const Starts& file : files) {
    const std::int64_t before = all->back();
    for (std::size_t i = 1; i < file->size(); ++i) all->push_back(before + (*file)[i]);
  }
  return all;
}

std::int64_t stored_length(const Starts& starts, std::int64_t id) {
  const auto at = static_cast<std::size_t>(id);
  return (*starts)[at + 1] - (*starts)[at];
}

}  // namespace

std::size_t Dataset::record_bytes() const {
  if (encoded) {
    std::uint64_t all = 0;
    for (const Shard& shard : shards) all += shard.bytes;
    return static_cast<std::size_t>(all / static_cast<std::uint64_t>(std::max<std::int64_t>(1, samples()))) + 1;
  }
  if (kind == DataKind::samples)
    return static_cast<std::size_t>(sample_shape.elems()) * size_of(stored) +
           static_cast<std::size_t>(label_shape.elems()) * sizeof(std::int32_t);
  if (kind == DataKind::text) return static_cast<std::size_t>(length() + 1) * sizeof(std::int32_t);
  const std::int64_t sequences = samples();
  ECHELON_CHECK(sequences > 0, "no sequences");
  const std::int64_t labels = step_labels ? starts->back() * label_shape.elems() : sequences;
  const auto all = static_cast<std::size_t>(starts->back() * sample_shape.row_elems() +
                                            (target_starts ? target_starts->back() : 0) + labels);
  return 4 * all / static_cast<std::size_t>(sequences) + 1;
}

SampleForm Dataset::form(std::int64_t bucket) const {
  const auto padded = [&](std::int64_t most) { return bucket > 0 ? std::min(bucket, most) : most; };
  SampleForm form{.shape = sample_shape, .vocabulary = vocabulary.size(), .classes = classes};
  form.shape = view.shape_of(sample_shape);
  form.mixes = mixes;
  if (has_sequences()) form.shape = sample_shape.with_front(padded(length()));
  form.label = kind == DataKind::text ? form.shape : step_labels ? label_shape.prepended(form.shape[0]) : label_shape;
  form.dense = has_dense_classes();
  form.stream = stream;
  form.lengths = kind == DataKind::sequences || kind == DataKind::pairs;
  if (kind == DataKind::pairs) {
    form.target = padded(target_length);
    form.label = {form.target};
  }
  return form;
}

std::size_t Dataset::file_of(std::int64_t id) const {
  const auto after = std::upper_bound(shards.begin(), shards.end(), id,
                                      [](std::int64_t sample, const Shard& shard) { return sample < shard.first; });
  return static_cast<std::size_t>(after - shards.begin()) - 1;
}

std::int64_t Dataset::length_of(std::int64_t id) const {
  return starts ? std::min(stored_length(starts, id), length()) : length();
}

std::int64_t Dataset::target_length_of(std::int64_t id) const {
  return std::min(stored_length(target_starts, id) + 1, target_length);
}

std::int64_t Dataset::labels_of(std::int64_t id) const {
  if (kind == DataKind::text) return length();
  if (kind == DataKind::pairs) return target_length_of(id);
  return label_shape.elems() * (step_labels ? length_of(id) : 1);
}

std::int64_t Dataset::series_of(std::int64_t id) const {
  return series ? std::upper_bound(series->begin(), series->end(), id) - series->begin() - 1 : id;
}

std::int64_t Dataset::records_of(const Shard& shard) const {
  return series ? series_of(shard.first + shard.samples - 1) + 1 - series_of(shard.first) : shard.samples;
}

std::int64_t Dataset::cut() const {
  std::int64_t count = 0;
  if (!starts) return count;
  for (std::int64_t id = 0; id < samples(); ++id)
    if (stored_length(starts, id) > length() || (target_starts && stored_length(target_starts, id) + 1 > target_length))
      ++count;
  return count;
}

const char* Dataset::labels_name() const { return hdf5 ? hdf5->labels.c_str() : sample_format::kLabels; }

void demand_labels(Dataset& dataset, const ModelConfig& model) {
  if (model.loss == "bce" && dataset.has_numbers()) dataset.least_label = 0, dataset.most_label = 1;
  if (model.loss == "hinge" && dataset.has_numbers()) dataset.least_label = -1, dataset.most_label = 1;
  const LabelKeys& keys = model.labels;
  const bool weighs = !keys.class_weights.empty() || keys.inverse_frequency > 0;
  if (!weighs && keys.ignore_label.empty()) return;
  if (dataset.has_numbers() || dataset.kind == DataKind::text || dataset.kind == DataKind::pairs)
    throw ConfigError(
        fmt::format("model.{} is for classes of samples and sequences; {} holds {}; leave it out",
                    !keys.ignore_label.empty()    ? "ignore_label"
                    : !keys.class_weights.empty() ? "class_weights"
                                                  : "inverse_frequency",
                    dataset.shards[0].path,
                    dataset.has_numbers() ? "labels that are numbers" : fmt::format("{}", name_of(dataset.kind))));
  if (!keys.class_weights.empty() && std::ssize(keys.class_weights) != dataset.classes)
    throw ConfigError(fmt::format("model.class_weights has {}, but {} has {}; give one weight a class",
                                  counted(std::ssize(keys.class_weights), "weight"), dataset.shards[0].path,
                                  dataset.classes == 1 ? "1 class" : fmt::format("{} classes", dataset.classes)));
  for (const std::int64_t label : keys.ignore_label)
    dataset.label_weights.ignored.push_back(static_cast<std::int32_t>(label));
  if (!keys.class_weights.empty()) dataset.label_weights.by_class = keys.class_weights;
}

void weigh_by_frequency(Dataset& train, const ModelConfig& model) {
  const LabelKeys& keys = model.labels;
  if (keys.inverse_frequency == 0) return;
  std::vector<std::int64_t> counts = train.label_sample->class_counts();
  if (counts.empty())
    throw DataError(fmt::format("{}: has no label that counts, from which model.inverse_frequency could take weights",
                                train.shards[0].path));
  counts.resize(static_cast<std::size_t>(train.classes));
  train.label_weights.by_class = inverse_frequency_weights(counts, keys.inverse_frequency);
}

void see_alike(Dataset& test, Dataset& train) {
  const std::string &path = test.shards[0].path, &like = train.shards[0].path;
  if (test.kind != train.kind)
    fail(path,
         fmt::format("holds {}, but the training data in {} hold {}", name_of(test.kind), like, name_of(train.kind)));
  const bool same_rows = test.has_sequences()
                             ? test.sample_shape.row_elems() == train.sample_shape.row_elems() &&
                                   test.sample_shape.rank() == train.sample_shape.rank()
                             : test.view.shape_of(test.sample_shape) == train.view.shape_of(train.sample_shape);
  if (test.step_labels != train.step_labels)
    fail(path, fmt::format("has a label for each {}, but the training data in {} for each {}",
                           test.step_labels ? "step" : "sample", like, train.step_labels ? "step" : "sample"));
  if (test.label_shape != train.label_shape)
    fail(path, fmt::format("has labels of {}, but those of the training data in {} are of {}", test.label_shape.text(),
                           like, train.label_shape.text()));
  if (!same_rows || test.classes != train.classes)
    fail(path, fmt::format("holds samples of {} and {} classes, but the training data in {} have {} and {}",
                           test.sample_shape.text(), test.classes, like, train.sample_shape.text(), train.classes));
  if (!test.class_names.empty() && !train.class_names.empty() && test.class_names != train.class_names)
    fail(path, fmt::format("numbers its classes [{}], but the training data in {} number them [{}]; import it --like "
                           "the training data",
                           fmt::join(test.class_names, ", "), like, fmt::join(train.class_names, ", ")));
  if (!(test.vocabulary == train.vocabulary) || !(test.target_vocabulary == train.target_vocabulary))
    fail(path, fmt::format("has a different vocabulary from the training data in {}; hold out a part of the data when "
                           "they are imported, or import it --like the training data",
                           like));
  if (test.hdf5 && train.hdf5 && test.scale != train.scale)
    fail(path, fmt::format("is read with scale {:.6g}, but the training data in {} with {:.6g}, because their types "
                           "differ; set data.hdf5.scale",
                           test.scale, like, train.scale));
  test.mean = train.mean;
  test.std = train.std;
  if (!train.has_sequences()) return;
  for (Dataset* each : {&test, &train}) {
    set_length(*each, std::max(test.length(), train.length()));
    each->target_length = std::max(test.target_length, train.target_length);
  }
}

Dataset with_slab(Dataset dataset, const Slab& slab, bool changed) {
  if (!slab.any()) return dataset;
  const auto record = static_cast<double>(dataset.record_bytes());
  Dataset own = dataset;
  own.slab = slab;
  own.sample_shape = slab.samples.shape_of(dataset.sample_shape);
  own.label_shape = slab.labels.shape_of(dataset.label_shape);
  own.share = static_cast<double>(own.record_bytes()) / record;
  if (!changed && !dataset.view.any() && !dataset.encoded) return own;
  own.slab.samples = {};
  own.sample_shape = dataset.sample_shape;
  own.kept = slab.samples;
  return own;
}

ImageView view_of(const DataConfig& config) {
  if (config.image_size.empty()) return {};
  const std::int64_t height = config.image_size.front(), width = config.image_size.back();
  const std::int64_t larger = std::max(height, width);
  return {.height = height,
          .width = width,
          .resize = config.evaluation_resize > 0 ? config.evaluation_resize : (larger * 8 + 3) / 7};
}

namespace {

// Opens the files, and leaves the length of sequences open.
Dataset open_files(const std::string& location, Labels labels, const Hdf5Config& hdf5) {
  Dataset dataset;
  std::vector<Starts> starts, target_starts;  // [file]
  for (const std::string& file : files_at(location)) {
    if (!dataset.shards.empty() && hdf5.used() && is_one_sample_a_file(hdf5)) {  // not opened: load_chunk checks it
      Shard next = dataset.shards.front();
      next.path = file;
      next.first = dataset.samples();
      dataset.shards.push_back(std::move(next));
      starts.push_back(starts.front());
      continue;
    }
    Dataset next = hdf5.used() ? read_foreign(file, labels, hdf5) : read_shard(file, labels);
    starts.push_back(next.starts);
    target_starts.push_back(next.target_starts);
    if (dataset.shards.empty()) {
      dataset = std::move(next);
      continue;
    }
    require_agreement(dataset, next);
    next.shards[0].first = dataset.samples();
    dataset.shards.push_back(std::move(next.shards[0]));
  }
  dataset.starts = joined(starts);
  dataset.target_starts = joined(target_starts);
  return dataset;
}

}  // namespace

Dataset open_dataset(const std::string& location, const DataConfig& config, Labels labels) {
  Dataset dataset = open_files(location, labels, config.hdf5);
  dataset.stream = config.order == Order::stream;
  if (dataset.stream && dataset.kind != DataKind::text && dataset.kind != DataKind::sequences)
    throw ConfigError(
        fmt::format("data.order = \"stream\" is for text and for series with a label for each step; {} holds {}",
                    location, name_of(dataset.kind)));
  choose_length(dataset, config.sequence_length);
  dataset.view = view_of(config);
  if (dataset.view.any() && (dataset.kind != DataKind::samples || dataset.sample_shape.rank() != 3))
    throw ConfigError(fmt::format("data.image_size is for images (C, H, W); {} holds {} of {}", location,
                                  name_of(dataset.kind), dataset.sample_shape.text()));
  if (config.threads > 1 && dataset.kind != DataKind::samples)
    throw ConfigError(fmt::format("data.threads decodes and changes samples of one shape; {} holds {}; leave it out",
                                  location, name_of(dataset.kind)));
  if (dataset.view.any() && dataset.label_shape.rank() > 1)
    throw ConfigError(fmt::format("data.image_size would resize images and not their labels of {}; leave it out",
                                  dataset.label_shape.text()));
  return dataset;
}

Dataset open_dataset(const std::string& location, std::int64_t sequence_length, Labels labels, const Hdf5Config& hdf5) {
  Dataset dataset = open_files(location, labels, hdf5);
  choose_length(dataset, sequence_length);
  return dataset;
}

}  // namespace echelon::inline data
