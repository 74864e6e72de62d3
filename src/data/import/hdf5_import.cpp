// SPDX-License-Identifier: Apache-2.0
#include "data/import/hdf5_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "config/parse.hpp"
#include "data/chunk_cache.hpp"
#include "data/dataset.hpp"
#include "data/files_ahead.hpp"
#include "data/foreign_file.hpp"
#include "data/foreign_labels.hpp"
#include "data/format.hpp"
#include "data/import/file_stamp.hpp"
#include "data/import/fresh_folder.hpp"
#include "data/import/hold_out.hpp"
#include "data/import/packed.hpp"
#include "data/import/shared_import.hpp"

namespace echelon::inline data {
namespace {

constexpr std::int64_t kWindow = 256 << 20;    // bytes of samples that are mixed in memory
constexpr std::int64_t kTogether = 256 << 10;  // bytes worth a read of their own

// The data as the experiment describes them, and what shards say of them.
struct Hdf5Input {
  explicit Hdf5Input(const std::string& experiment);

  std::uint64_t stamp_of_file(std::size_t file) const;

  DataConfig config;
  Dataset set;
  SourceInfo info;
  std::vector<std::uint64_t> stamps;  // [file]; set by Hdf5Import::share_stamps
};

Hdf5Input::Hdf5Input(const std::string& experiment) {
  const Config all = load_config(experiment);
  config = all.data;
  if (!config.hdf5.used())
    throw ConfigError(fmt::format("{}: has no [data.hdf5], which says how files are read (data/HDF5.md)", experiment));
  set = open_dataset(config.train, config);
  if (set.has_sequences())
    throw ConfigError(fmt::format("{}: time series (axis T) are read as they lie, not imported", experiment));
  if (set.encoded)
    throw ConfigError(
        fmt::format("{}: encoded images are read as they lie; `data import images --stored encoded` makes shards of "
                    "image files",
                    experiment));
  if (set.weighted)
    throw ConfigError(fmt::format("{}: data.hdf5.weights: shards hold no weights of samples", experiment));
  if (set.classes > sample_format::kMostClasses)
    throw ConfigError(fmt::format("{}: data.hdf5.classes = {}, at most {} are possible", experiment, set.classes,
                                  sample_format::kMostClasses));
  demand_labels(set, all.model);
  for (const std::int64_t label : all.model.labels.ignore_label) info.any_label |= label < 0 || label > 255;
  info.sample = set.sample_shape;
  info.stored = set.stored;
  info.scale = set.scale;
  info.classes = set.classes;
  info.class_names = set.class_names;
  info.label = set.label_shape;
  if (set.has_numbers()) info.targets = set.label_shape.elems();
  const Hdf5Config& keys = config.hdf5;
  if (!keys.mean.empty() || !keys.std.empty() || !keys.range.empty() || !keys.statistics.empty()) {
    info.mean = set.mean;
    info.std = set.std;
  }
  // A shuffle of training takes blocks of many samples; an import takes those that must be read together.
  const auto bytes = static_cast<std::int64_t>(set.record_bytes());
  for (Shard& shard : set.shards) {
    const std::int64_t stored = shard.chunk.rank() == 0 ? 1 : std::max<std::int64_t>(shard.chunk[0], 1);
    const std::int64_t worth = (kTogether / bytes + stored) / stored * stored;
    shard.chunk_rows = std::clamp<std::int64_t>(worth, 1, shard.chunk_rows);
  }
}

// Identifies the content of a file and of its file of labels, if it has one, by size and time.
std::uint64_t Hdf5Input::stamp_of_file(std::size_t file) const {
  const std::string &path = set.shards[file].path, labels = labels_file_of(path, config.hdf5);
  const std::uint64_t stamp = stamp_of(path).stamp;
  return labels.empty() ? stamp : hash_combine(stamp, stamp_of(labels).stamp);
}

// The ids of all samples in the order of the shards: those of training, then those held out.
struct SampleList {
  SampleList(const Hdf5Input& input, const ShardOptions& options);

  std::vector<std::int64_t> ids;
  std::int64_t train = 0;
  std::vector<PlannedShard> shards;

 private:
  void mix_windows(const Hdf5Input& input);
};

SampleList::SampleList(const Hdf5Input& input, const ShardOptions& options) {
  const std::int64_t all = input.set.samples(), held = held_out_of(all, options);
  const HoldOut is_held(all, held);
  std::vector<std::pair<std::int64_t, std::int64_t>> blocks;  // [first, end) of ids
  for (const Shard& shard : input.set.shards)
    for (std::int64_t row = 0; row < shard.samples; row += shard.chunk_rows)
      blocks.emplace_back(shard.first + row, shard.first + std::min(row + shard.chunk_rows, shard.samples));
  const HashRng draws(1, "blocks");
  if (!options.keep_order)
    for (std::size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[draws.below(i, i)]);
  for (const auto& [first, end] : blocks)
    for (std::int64_t id = first; id < end; ++id)
      if (!is_held(id)) ids.push_back(id);
  train = std::ssize(ids);
  for (std::int64_t id = 0; id < all; ++id)
    if (is_held(id)) ids.push_back(id);
  shards = planned_shards(train, held, options);
  if (!options.keep_order) mix_windows(input);
}

void SampleList::mix_windows(const Hdf5Input& input) {
  const HashRng draws(1, "samples");
  const auto most = std::max<std::size_t>(1, static_cast<std::size_t>(kWindow) / input.set.record_bytes());
  for (const PlannedShard& shard : shards) {
    if (shard.test) continue;
    const std::size_t windows = (shard.count - 1) / most + 1;
    for (std::size_t w = 0; w < windows; ++w) {
      const std::size_t first = shard.first + shard.count * w / windows;
      const std::size_t end = shard.first + shard.count * (w + 1) / windows;
      for (std::size_t i = end; i > first + 1; --i) std::swap(ids[i - 1], ids[first + draws.below(i, i - first)]);
    }
  }
}

// Identifies the samples of a shard and all that affects its bytes.
std::string made_of(const Hdf5Input& input, const SampleList& list, const PlannedShard& shard,
                    const ShardOptions& options) {
  Packing packed;
  packed.put(sample_format::kVersion);
  const Hdf5Config& keys = input.config.hdf5;
  packed.put(keys.samples);
  for (const std::string& text : {keys.axes, keys.labels, input.info.sample.text(), input.info.label.text()})
    packed.put(std::string_view(text));
  packed.put(keys.channels);
  for (const std::int64_t key :
       {static_cast<std::int64_t>(keys.label_form), keys.label_column, static_cast<std::int64_t>(keys.transform),
        static_cast<std::int64_t>(keys.missing), input.info.classes, input.info.targets,
        std::int64_t{input.info.any_label ? 1 : 0}, options.chunk, std::int64_t{options.compress},
        std::int64_t{options.checksums ? 1 : 0}})
    packed.put(key);
  packed.put(keys.lead);
  packed.put(keys.label_mean);
  packed.put(keys.label_std);
  packed.put(input.info.class_names);
  packed.put(input.info.scale);
  packed.put(input.set.mean);  // missing values become the mean
  std::size_t file = 0;
  for (std::size_t i = shard.first; i < shard.first + shard.count; ++i) {
    file = input.set.file_of(list.ids[i]);
    const Shard& from = input.set.shards[file];
    packed.put(std::string_view(std::filesystem::path(from.path).filename().native()));
    packed.put(input.stamps[file]);
    packed.put(list.ids[i] - from.first);
  }
  return hex64(checksum64(packed.bytes()));
}

class Hdf5Import {
 public:
  Hdf5Import(const ShardOptions& options, const ImportTeam& team)
      : options_(options), team_(team), shared_(options, team, "samples") {}

  ImportWritten run() {
    team_.together([&] {
      check_options(options_);
      require_free(options_.out);
      input_.emplace(options_.input);
      refuse_odd_classes({}, input_->info.classes, input_->info.class_names, options_);
    });
    share_stamps();
    team_.together([&] {
      list_.emplace(*input_, options_);
      for (PlannedShard& shard : list_->shards) shard.made_of = made_of(*input_, *list_, shard, options_);
      const Dataset& set = input_->set;
      std::int64_t block = 0;
      for (const Shard& shard : set.shards) block = std::max(block, shard.chunk_rows);
      records_.emplace(set, kWindow + 2 * block * static_cast<std::int64_t>(set.record_bytes()));
    });
    shared_.make(
        list_->shards,
        [&](const PlannedShard& shard, LongWork& work, std::int64_t& done) { return make_shard(shard, work, done); },
        [](const ShardNote&) { return true; });
    return shared_.finish(input_->info);
  }

 private:
  void share_stamps();
  std::optional<ShardNote> make_shard(const PlannedShard& shard, LongWork& work, std::int64_t& done);
  void look_ahead(const PlannedShard& shard, std::size_t at);
  void require_unchanged(const std::set<std::size_t>& files) const;

  const ShardOptions& options_;
  const ImportTeam& team_;
  SharedImport shared_;
  std::optional<Hdf5Input> input_;
  std::optional<SampleList> list_;
  std::optional<ChunkCache> records_;
  std::unique_ptr<FilesAhead> ahead_;
};

// Each rank looks at a share of the files; all must see the same names and numbers of samples.
void Hdf5Import::share_stamps() {
  Packing own;
  const std::vector<Shard>& files = input_->set.shards;
  team_.together([&] {
    Packing seen;
    for (const Shard& file : files) {
      seen.put(std::string_view(file.path));
      seen.put(file.samples);
    }
    own.put(checksum64(seen.bytes()));
    for (std::size_t i = 0; i < files.size(); ++i)
      if (team_.is_own(i)) own.put(input_->stamp_of_file(i));
  });
  const std::vector<std::string> of_ranks = team_.gather(own.bytes());
  team_.together([&] {
    input_->stamps.resize(files.size());
    std::vector<Unpacking> packed = of_same_files(of_ranks, input_->config.train);
    for (std::size_t r = 0; r < packed.size(); ++r)
      for (std::size_t i = r; i < files.size(); i += packed.size()) packed[r].get(input_->stamps[i]);
  });
}

// Returns none if another rank has failed meanwhile.
std::optional<ShardNote> Hdf5Import::make_shard(const PlannedShard& shard, LongWork& work, std::int64_t& done) {
  const SourceInfo& info = input_->info;
  ShardFile file(shared_.path(shard), static_cast<std::int64_t>(shard.count), info, SharedImport::header_of(info),
                 options_);
  Statistics statistics(info);
  std::set<std::size_t> files;
  std::vector<bool> seen(static_cast<std::size_t>(info.targets > 0 ? 0 : info.classes));
  const std::int64_t places = input_->set.label_shape.elems();
  for (std::size_t i = 0; i < shard.count; ++i) {
    if (i % SharedImport::kLookEvery == 0 && shared_.stopped()) return std::nullopt;
    work.at(done);
    look_ahead(shard, i);
    const Record record = records_->record(list_->ids[shard.first + i]);
    files.insert(record.file);
    const void* label = info.targets > 0 ? static_cast<const void*>(record.numbers) : record.labels;
    file.append(record.sample, static_cast<const std::uint8_t*>(label));
    statistics.add(record.sample, 1);
    if (info.targets == 0)
      for (std::int64_t at = 0; at < places; ++at)
        if (record.labels[at] >= 0 && record.labels[at] < info.classes)
          seen[static_cast<std::size_t>(record.labels[at])] = true;
    ++done;
  }
  require_unchanged(files);
  std::vector<std::int32_t> labels;
  for (std::size_t label = 0; label < seen.size(); ++label)
    if (seen[label]) labels.push_back(static_cast<std::int32_t>(label));
  file.publish();
  return shared_.keep(shard, static_cast<std::int64_t>(shard.count), statistics, std::move(labels));
}

// With one sample a file, has the files that follow read into the system's cache.
void Hdf5Import::look_ahead(const PlannedShard& shard, std::size_t at) {
  constexpr std::size_t kFiles = 16;
  if (at % kFiles != 0 || !is_one_sample_a_file(input_->config.hdf5)) return;
  if (!ahead_) ahead_ = std::make_unique<FilesAhead>();
  std::vector<std::string> paths;
  for (std::size_t i = at == 0 ? 0 : at + kFiles; i < std::min(at + 2 * kFiles, shard.count); ++i)
    paths.push_back(records_->path_of(list_->ids[shard.first + i]));
  ahead_->expect(paths);
}

void Hdf5Import::require_unchanged(const std::set<std::size_t>& files) const {
  for (const std::size_t file : files)
    if (input_->stamp_of_file(file) != input_->stamps[file])
      throw DataError(
          fmt::format("{}: was changed while it was imported, or rank {} does not see the same file as the others; "
                      "repeat the import once it stays as it is",
                      input_->set.shards[file].path, team_.rank));
}

}  // namespace

ImportWritten write_hdf5(const ShardOptions& options, const ImportTeam& team) {
  return Hdf5Import(options, team).run();
}

}  // namespace echelon::inline data
