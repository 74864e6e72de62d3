// SPDX-License-Identifier: Apache-2.0
#include "data/import/like.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "data/location.hpp"
#include "data/shard_header.hpp"

namespace echelon::inline data {
namespace {

[[noreturn]] void fail(const Dataset& set, const std::string& what) {
  throw DataError(fmt::format("{}: {}; --like needs a set of the same form", set.shards[0].path, what));
}

Dataset set_at(const std::string& location, DataKind kind) {
  Dataset set = read_shard(files_at(location).front());
  if (set.kind != kind) fail(set, fmt::format("holds {}, but the input holds {}", name_of(set.kind), name_of(kind)));
  return set;
}

// Returns the set's number for each class of the input; empty if the input's classes have no names.
std::vector<std::int32_t> numbers_in(const Dataset& set, const std::vector<std::string>& names) {
  std::vector<std::int32_t> numbers;
  for (const std::string& name : names) {
    const auto found = std::find(set.class_names.begin(), set.class_names.end(), name);
    if (set.class_names.empty()) fail(set, "has no class names, but the input has");
    if (found == set.class_names.end())
      throw DataError(
          fmt::format("{} (those of {})", unknown_name("class", name, set.class_names), set.shards[0].path));
    numbers.push_back(static_cast<std::int32_t>(found - set.class_names.begin()));
  }
  return numbers;
}

class SamplesLike final : public SampleSource {
 public:
  SamplesLike(std::unique_ptr<SampleSource> source, const std::string& location)
      : source_(std::move(source)), info_(source_->info()), set_(set_at(location, DataKind::samples)) {
    if (set_.sample_shape != info_.sample)
      fail(set_,
           fmt::format("holds samples of {}, but the input has {}", set_.sample_shape.text(), info_.sample.text()));
    if (set_.has_numbers() != (info_.targets > 0) || (set_.has_numbers() && set_.label_shape.elems() != info_.targets))
      fail(set_, "has different labels from those of the input");
    if (set_.stored == info_.stored && set_.scale != info_.scale)
      fail(set_, fmt::format("has scale {:g}, but the input has {:g} (--value-max)", set_.scale, info_.scale));
    numbers_ = numbers_in(set_, info_.class_names);
    info_.classes = set_.classes;
    info_.class_names = set_.class_names;
    info_.mean = set_.mean;
    info_.std = set_.std;
  }

  const SourceInfo& info() const override { return info_; }
  void rewind() override { source_->rewind(); }

  std::int64_t read(std::int64_t most, std::uint8_t* samples, void* labels) override {
    const std::int64_t count = source_->read(most, samples, labels);
    if (info_.targets > 0) return count;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int32_t label = 0;
      auto* at = static_cast<std::uint8_t*>(labels) + 4 * i;
      std::memcpy(&label, at, sizeof label);
      if (!numbers_.empty()) label = numbers_[static_cast<std::size_t>(label)];
      if (label >= set_.classes)
        fail(set_, fmt::format("has classes 0 to {}, but the input has {}", set_.classes - 1, label));
      std::memcpy(at, &label, sizeof label);
    }
    return count;
  }

 private:
  std::unique_ptr<SampleSource> source_;
  SourceInfo info_;
  Dataset set_;
  std::vector<std::int32_t> numbers_;
};

class SequencesLike final : public SequenceSource {
 public:
  SequencesLike(std::unique_ptr<SequenceSource> source, const std::string& location)
      : source_(std::move(source)), info_(source_->info()) {
    const Dataset set = set_at(location, DataKind::sequences);
    const std::int64_t features = set.vocabulary.size() > 0 ? 0 : set.sample_shape[1];
    if (features != info_.features)
      fail(set, fmt::format("has steps of {} features, but the input has {}", features, info_.features));
    if (set.has_numbers()) fail(set, "has regression targets, but the input has classes");
    if (set.step_labels != info_.step_labels)
      fail(set, fmt::format("has a label for each {}; see --step-labels", set.step_labels ? "step" : "sequence"));
    numbers_ = numbers_in(set, info_.class_names);
    info_.class_names = set.class_names;
    info_.mean = set.mean;
    info_.std = set.std;
  }

  const SequenceInfo& info() const override { return info_; }
  void rewind() override { source_->rewind(); }

  bool next(SequenceRecord& record) override {
    if (!source_->next(record)) return false;
    record.label = numbers_[static_cast<std::size_t>(record.label)];
    for (std::int32_t& label : record.labels) label = numbers_[static_cast<std::size_t>(label)];
    return true;
  }

 private:
  std::unique_ptr<SequenceSource> source_;
  SequenceInfo info_;
  std::vector<std::int32_t> numbers_;
};

}  // namespace

std::vector<std::int32_t> take_classes(SourceInfo& info, const std::string& location) {
  const Dataset set = set_at(location, DataKind::samples);
  if (set.has_numbers()) fail(set, "has regression targets, but the input has classes");
  if (info.sample[1] == 0) info.sample = set.sample_shape.with_front(info.sample[0]);
  if (set.sample_shape != info.sample)
    fail(set, fmt::format("holds samples of {}, but the input gives {}", set.sample_shape.text(), info.sample.text()));
  if (set.stored != info.stored || set.scale != info.scale)
    fail(set, fmt::format("is {} with scale {:g}, but the input is {} with scale {:g}", name_of(set.stored), set.scale,
                          name_of(info.stored), info.scale));
  std::vector<std::int32_t> numbers = numbers_in(set, info.class_names);
  if (numbers.empty()) {
    if (info.classes > set.classes)
      fail(set, fmt::format("has classes 0 to {}, but the input has {}", set.classes - 1, info.classes - 1));
    numbers.resize(static_cast<std::size_t>(info.classes));
    std::iota(numbers.begin(), numbers.end(), 0);
  }
  info.classes = set.classes;
  info.class_names = set.class_names;
  info.mean = set.mean;
  info.std = set.std;
  return numbers;
}

std::unique_ptr<SampleSource> source_like(std::unique_ptr<SampleSource> source, const std::string& location) {
  return std::make_unique<SamplesLike>(std::move(source), location);
}

std::unique_ptr<SequenceSource> source_like(std::unique_ptr<SequenceSource> source, const std::string& location) {
  return std::make_unique<SequencesLike>(std::move(source), location);
}

}  // namespace echelon::inline data
