// SPDX-License-Identifier: Apache-2.0
#include "data/import/sequence_writer.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "data/format.hpp"
#include "data/import/fresh_folder.hpp"
#include "data/import/hold_out.hpp"
#include "data/import/import_work.hpp"
#include "data/import/mixer.hpp"
#include "data/import/packed.hpp"
#include "data/import/row_buffer.hpp"

namespace echelon::inline data {
namespace {

namespace format = sample_format;
namespace fs = std::filesystem;

struct Measured {
  std::vector<std::int32_t> lengths, target_lengths;  // [sample]
  std::int64_t held = 0;
  std::vector<double> mean, std;  // [feature]
  std::string empty_classes;
};

// Mean and deviation of each feature by Welford's method (1962).
class FeatureMoments {
 public:
  explicit FeatureMoments(std::int64_t features)
      : mean_(static_cast<std::size_t>(features), 0.0), squares_(mean_.size(), 0.0) {}

  void add(const std::vector<float>& values) {
    for (std::size_t at = 0; at < values.size(); at += mean_.size()) {
      ++n_;
      for (std::size_t f = 0; f < mean_.size(); ++f) {
        const double value = static_cast<double>(values[at + f]), apart = value - mean_[f];
        mean_[f] += apart / n_;
        squares_[f] += apart * (value - mean_[f]);
      }
    }
  }
  const std::vector<double>& mean() const { return mean_; }
  std::vector<double> std() const {
    std::vector<double> out;
    for (const double squares : squares_) out.push_back(squares > 0 ? std::sqrt(squares / n_) : 1.0);
    return out;
  }

 private:
  double n_ = 0;
  std::vector<double> mean_, squares_;
};

Measured measure(SequenceSource& source, const ShardOptions& options) {
  Measured measured;
  const std::int64_t features = source.info().features;
  SequenceRecord record;
  std::vector<std::int32_t> labels;
  LabelCounts of_steps;
  ImportWork counting("sequences", 0);
  source.rewind();
  while (source.next(record)) {
    counting.at(std::ssize(measured.lengths));
    measured.lengths.push_back(static_cast<std::int32_t>(record.steps(features)));
    measured.target_lengths.push_back(static_cast<std::int32_t>(record.target.size()));
    labels.push_back(record.label);
    for (const std::int32_t label : record.labels) of_steps.add(label);
  }
  const auto samples = static_cast<std::int64_t>(measured.lengths.size());
  measured.held = held_out_of(samples, options);
  const HoldOut held_out(std::max<std::int64_t>(samples, 1), measured.held);
  const SequenceInfo& info = source.info();
  if (info.step_labels) {
    refuse_odd_classes(of_steps, std::ssize(info.class_names), info.class_names, options);
    measured.empty_classes = empty_classes_text(of_steps, std::ssize(info.class_names), info.class_names);
  } else if (info.kind == DataKind::sequences) {
    LabelCounts counts, train;
    for (std::int64_t i = 0; i < samples; ++i) {
      counts.add(labels[static_cast<std::size_t>(i)]);
      if (!held_out(i)) train.add(labels[static_cast<std::size_t>(i)]);
    }
    refuse_odd_classes(counts, std::ssize(info.class_names), info.class_names, options);
    measured.empty_classes = empty_classes_text(train, std::ssize(info.class_names), info.class_names);
  }
  if (features == 0) return measured;
  FeatureMoments moments(features);
  ImportWork measuring("sequences", samples);
  source.rewind();
  for (std::int64_t index = 0; source.next(record); ++index) {
    measuring.at(index);
    if (!held_out(index)) moments.add(record.values);
  }
  measured.mean = info.mean.empty() ? moments.mean() : info.mean;
  measured.std = info.std.empty() ? moments.std() : info.std;
  return measured;
}

// Shards in one folder; `lengths`: lengths of their samples, in order.
class SequenceShards {
 public:
  SequenceShards(const std::string& place, std::vector<std::int64_t> sizes, const SequenceInfo& info,
                 const Measured& measured, const ShardOptions& options)
      : folder_(place), sizes_(std::move(sizes)), info_(info), measured_(measured), options_(options) {}

  // Counts the rows of a sample; called for all samples before the first `append`.
  void announce(std::int32_t steps, std::int32_t target) {
    steps_.push_back(steps);
    targets_.push_back(target);
  }

  void append(const SequenceRecord& record) {
    if (!writer_) begin();
    lengths_->append(static_cast<std::int32_t>(record.steps(info_.features)));
    if (values_) values_->append(record.values);
    if (tokens_) tokens_->append(record.tokens);
    if (labels_ && info_.step_labels) labels_->append(record.labels);
    if (labels_ && !info_.step_labels) labels_->append(record.label);
    if (target_tokens_) {
      target_lengths_->append(static_cast<std::int32_t>(record.target.size()));
      target_tokens_->append(record.target);
    }
    if (++held_ == sizes_[file_]) end();
  }

  void publish(SequencesWritten& written) {
    if (file_ != sizes_.size()) throw DataError("the input became shorter while it was read");
    folder_.publish();
    for (std::size_t i = 0; i < file_; ++i) written.files.push_back(folder_.then(shard_name(options_, i)));
    written.bytes += bytes_;
  }

 private:
  using Tokens = std::unique_ptr<RowBuffer<std::int32_t>>;

  void write_header() {
    writer_->attribute(format::kFormat, std::string(format::kName));
    writer_->attribute(format::kFormatVersion, format::kVersion);
    writer_->attribute(format::kKind, std::string(name_of(info_.kind)));
    if (info_.features == 0) info_.vocabulary.write(*writer_, format::kVocabulary);
    if (info_.kind == DataKind::pairs) return info_.target_vocabulary.write(*writer_, format::kTargetVocabulary);
    writer_->attribute(format::kClasses, static_cast<std::int64_t>(info_.class_names.size()));
    write_class_names(*writer_, info_.class_names);
    if (info_.step_labels) writer_->attribute(format::kLabelsOf, std::string("steps"));
    if (info_.features == 0) return;
    writer_->attribute(format::kMean, measured_.mean);
    writer_->attribute(format::kStd, measured_.std);
  }

  Tokens rows(const char* name, DType stored, std::int64_t count) {
    return std::make_unique<RowBuffer<std::int32_t>>(*writer_, name, stored, Shape{count}, options_);
  }

  void begin() {
    writer_ = std::make_unique<h5::Writer>(folder_.now(shard_name(options_, file_)));
    write_header();
    const std::int64_t samples = sizes_[file_];
    std::int64_t steps = 0, targets = 0;
    for (std::int64_t i = first_; i < first_ + samples; ++i) {
      steps += steps_[static_cast<std::size_t>(i)];
      targets += targets_[static_cast<std::size_t>(i)];
    }
    lengths_ = rows(format::kLengths, DType::i32, samples);
    if (info_.features > 0)
      values_ = std::make_unique<RowBuffer<float>>(*writer_, format::kValues, DType::f32, Shape{steps, info_.features},
                                                   options_);
    else
      tokens_ = rows(format::kTokens, token_type(info_.vocabulary.size()), steps);
    if (info_.kind == DataKind::pairs) {
      target_lengths_ = rows(format::kTargetLengths, DType::i32, samples);
      target_tokens_ = rows(format::kTargetTokens, token_type(info_.target_vocabulary.size()), targets);
    } else {
      labels_ = rows(format::kLabels, info_.class_names.size() <= 256 ? DType::u8 : DType::i32,
                     info_.step_labels ? steps : samples);
    }
    held_ = 0;
  }

  void end() {
    for (Tokens* buffer : {&lengths_, &tokens_, &labels_, &target_lengths_, &target_tokens_}) {
      if (*buffer) (*buffer)->flush();
      buffer->reset();
    }
    if (values_) values_->flush();
    values_.reset();
    writer_->publish();
    writer_.reset();
    bytes_ += fs::file_size(folder_.now(shard_name(options_, file_)));
    first_ += sizes_[file_++];
  }

  FreshFolder folder_;
  std::vector<std::int64_t> sizes_;
  const SequenceInfo& info_;
  const Measured& measured_;
  const ShardOptions& options_;
  std::vector<std::int32_t> steps_, targets_;  // [sample]
  std::unique_ptr<h5::Writer> writer_;
  Tokens lengths_, tokens_, labels_, target_lengths_, target_tokens_;
  std::unique_ptr<RowBuffer<float>> values_;
  std::int64_t held_ = 0;   // samples in the open shard
  std::int64_t first_ = 0;  // first sample of the open shard
  std::size_t file_ = 0;    // complete shards
  std::uint64_t bytes_ = 0;
};

// Returns the values at these indices.
std::vector<std::int64_t> in_order(const std::vector<std::int64_t>& values, std::vector<std::int64_t> indices) {
  for (std::int64_t& index : indices) index = values[static_cast<std::size_t>(index)];
  return indices;
}

std::string packed(const SequenceRecord& record) {
  Packing packing;
  packing.put(record.tokens);
  packing.put(record.values);
  packing.put(record.target);
  packing.put(record.label);
  packing.put(record.labels);
  return packing.bytes();
}

void unpack(std::string_view bytes, SequenceRecord& record) {
  Unpacking packed(bytes);
  packed.get(record.tokens);
  packed.get(record.values);
  packed.get(record.target);
  packed.get(record.label);
  packed.get(record.labels);
}

// Approximate size of all records in the mixer.
std::int64_t packed_bytes(const Measured& measured, std::int64_t features) {
  std::int64_t numbers = 0;
  for (const std::int32_t length : measured.lengths) numbers += length * std::max<std::int64_t>(1, features);
  for (const std::int32_t length : measured.target_lengths) numbers += length;
  return 4 * numbers + 32 * std::ssize(measured.lengths);
}

}  // namespace

SequencesWritten write_sequences(SequenceSource& source, const ShardOptions& options) {
  check_options(options);
  const ImportFolders folders = free_folders(options);
  const Measured measured = measure(source, options);
  const auto samples = static_cast<std::int64_t>(measured.lengths.size());
  const auto [shortest, longest] = std::minmax_element(measured.lengths.begin(), measured.lengths.end());

  SequencesWritten written;
  written.samples = samples - measured.held;
  written.held_out = measured.held;
  written.shortest = *shortest;
  written.longest = *longest;
  for (const std::int32_t length : measured.lengths) written.steps += length;
  written.mean = measured.mean;
  written.std = measured.std;
  written.empty_classes = measured.empty_classes;

  SequenceShards train(folders.train, shard_sizes(written.samples, options), source.info(), measured, options);
  std::unique_ptr<SequenceShards> test;
  if (measured.held > 0)
    test = std::make_unique<SequenceShards>(folders.test, std::vector<std::int64_t>{measured.held}, source.info(),
                                            measured, options);
  const HoldOut held_out(samples, measured.held);
  const auto announce = [&](SequenceShards& shards, std::int64_t index) {
    const auto at = static_cast<std::size_t>(index);
    shards.announce(measured.lengths[at], measured.target_lengths[at]);
  };
  std::optional<Mixer> mixer;
  std::vector<std::int64_t> training;  // indices of the samples that are not held out
  for (std::int64_t i = 0; i < samples; ++i) {
    if (held_out(i))
      announce(*test, i);
    else
      training.push_back(i);
  }
  if (!options.keep_order) {
    mixer.emplace(folders.train, packed_bytes(measured, source.info().features));
    training = in_order(training, mixer->order(written.samples));
  }
  for (const std::int64_t i : training) announce(train, i);
  SequenceRecord record;
  ImportWork writing("sequences", samples);
  source.rewind();
  for (std::int64_t index = 0; source.next(record); ++index) {
    writing.at(index);
    if (index == samples) throw DataError("the input became longer while it was read");
    if (held_out(index))
      test->append(record);
    else if (mixer)
      mixer->add(packed(record));
    else
      train.append(record);
  }
  if (mixer)
    mixer->each([&](std::int64_t, std::string_view mixed) {
      unpack(mixed, record);
      train.append(record);
    });
  if (test) test->publish(written);
  train.publish(written);
  return written;
}

}  // namespace echelon::inline data
