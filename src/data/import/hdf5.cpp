// SPDX-License-Identifier: Apache-2.0
// HDF5 files of other programs, as [data.hdf5] of an experiment describes them: its training data become shards.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "data/chunk_cache.hpp"
#include "data/dataset.hpp"
#include "data/import/source.hpp"

namespace echelon::inline data {
namespace {

class Hdf5Files final : public SampleSource {
 public:
  Hdf5Files(const DataConfig& config, Dataset set) : set_(std::move(set)) {
    info_.sample = set_.sample_shape;
    info_.stored = set_.stored;
    info_.scale = set_.scale;
    info_.classes = set_.classes;
    info_.class_names = set_.class_names;
    if (set_.has_numbers()) info_.targets = set_.label_shape.elems();
    const Hdf5Config& keys = config.hdf5;
    if (keys.mean.empty() && keys.std.empty() && keys.range.empty() && keys.statistics.empty()) return;
    info_.mean = set_.mean;
    info_.std = set_.std;
  }

  const SourceInfo& info() const override { return info_; }
  void rewind() override {
    next_ = 0;
    records_ = std::make_unique<ChunkCache>(set_, kBuffer);
  }
  std::int64_t read(std::int64_t most, std::uint8_t* samples, void* labels) override {
    if (!records_) rewind();
    const std::int64_t count = std::min(most, set_.samples() - next_);
    const std::size_t bytes = static_cast<std::size_t>(set_.sample_shape.elems()) * size_of(set_.stored);
    for (std::int64_t i = 0; i < count; ++i, ++next_) {
      const Record record = records_->record(next_);
      std::memcpy(samples + static_cast<std::size_t>(i) * bytes, record.sample, bytes);
      if (info_.targets > 0)
        std::copy_n(record.numbers, info_.targets, static_cast<float*>(labels) + i * info_.targets);
      else
        static_cast<std::int32_t*>(labels)[i] = record.labels[0];
    }
    return count;
  }

 private:
  static constexpr std::int64_t kBuffer = 64 << 20;
  Dataset set_;
  SourceInfo info_;
  std::unique_ptr<ChunkCache> records_;
  std::int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<SampleSource> open_hdf5(const ImportRequest& request) {
  if (request.inputs.size() != 1)
    throw ConfigError(
        fmt::format("hdf5 takes one experiment (TOML) whose [data.hdf5] describes the files of data.train; "
                    "{} given",
                    counted(std::ssize(request.inputs), "input")));
  const Config config = load_config(request.inputs[0]);
  if (!config.data.hdf5.used())
    throw ConfigError(
        fmt::format("{}: has no [data.hdf5], which says how files are read (data/HDF5.md)", request.inputs[0]));
  Dataset set = open_dataset(config.data.train, config.data);
  if (set.has_sequences())
    throw ConfigError(fmt::format("{}: time series (axis T) are read as they lie, not imported", request.inputs[0]));
  if (set.weighted)
    throw ConfigError(fmt::format("{}: data.hdf5.weights: shards hold no weights of samples", request.inputs[0]));
  if (set.label_shape.rank() > (set.has_numbers() ? 1 : 0))
    throw ConfigError(fmt::format("{}: labels of {} a sample are read as they lie, not imported", request.inputs[0],
                                  set.label_shape.text()));
  return std::make_unique<Hdf5Files>(config.data, std::move(set));
}

}  // namespace echelon::inline data
