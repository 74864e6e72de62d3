// SPDX-License-Identifier: Apache-2.0
#include "data/import/shared_import.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "data/format.hpp"
#include "data/import/import_work.hpp"
#include "data/label_counts.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {
namespace {

// The state in which an earlier attempt left a shard.
constexpr char kAbsent = '0', kKept = '1', kChanged = '2';

}  // namespace

std::vector<PlannedShard> planned_shards(std::int64_t train, std::int64_t held, const ShardOptions& options) {
  std::vector<PlannedShard> shards;
  const std::string folder = held > 0 ? "train/" : "";
  std::size_t first = 0, index = 0;
  for (const std::int64_t size : shard_sizes(train, options)) {
    const auto count = static_cast<std::size_t>(size);
    shards.push_back({.file = folder + shard_name(options, index++), .made_of = {}, .first = first, .count = count});
    first += count;
  }
  if (held > 0)
    shards.push_back({.file = "test/" + shard_name(options, 0),
                      .made_of = {},
                      .test = true,
                      .first = first,
                      .count = static_cast<std::size_t>(held)});
  return shards;
}

std::vector<Unpacking> of_same_files(const std::vector<std::string>& of_ranks, const std::string& place) {
  std::vector<Unpacking> all;
  std::uint64_t of_first = 0;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    std::uint64_t seen = 0;
    all.emplace_back(of_ranks[r]).get(seen);
    if (r == 0) of_first = seen;
    if (seen != of_first)
      throw EnvironmentError(fmt::format(
          "{}: rank {} does not see the same files as rank 0; is this folder shared between the hosts?", place, r));
  }
  return all;
}

SharedImport::SharedImport(const ShardOptions& options, const ImportTeam& team, const char* unit)
    : team_(team), unit_(unit), folder_(options.out) {}

void SharedImport::make(const std::vector<PlannedShard>& shards, const Make& make, const Keeps& keeps) {
  shards_ = shards;
  team_.together([&] {
    if (team_.rank != 0) return;
    make_folders(folder_.path());
    team_.hold(folder_.path());
    folder_.prepare(shards_);
  });
  notes_.resize(shards_.size());
  make_missing(missing(keeps), make);
  share_notes();
}

// Returns the shards that are missing; reads this rank's share of the notes of the others.
std::vector<std::size_t> SharedImport::missing(const Keeps& keeps) {
  std::string own(shards_.size(), kAbsent);
  team_.together([&] {
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (!team_.is_own(i)) continue;
      bool changed = false;
      notes_[i] = folder_.note_of(shards_[i], changed);
      if (notes_[i] && !keeps(*notes_[i])) notes_[i].reset();
      own[i] = notes_[i] ? kKept : changed ? kChanged : kAbsent;
    }
  });
  std::vector<std::size_t> missing;
  std::set<std::string> kept;
  const std::vector<std::string> of_ranks = team_.gather(own);
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const char found = of_ranks[i % of_ranks.size()][i];
    if (found == kKept)
      kept.insert(shards_[i].file);
    else
      missing.push_back(i);
    changed_ += found == kChanged ? 1 : 0;
  }
  kept_ = static_cast<std::int64_t>(kept.size());
  team_.together([&] {
    if (team_.rank == 0) folder_.keep_only(kept);
  });
  return missing;
}

void SharedImport::make_missing(const std::vector<std::size_t>& missing, const Make& make) {
  std::int64_t own = 0, done = 0;
  for (std::size_t i = 0; i < missing.size(); ++i)
    if (team_.is_own(i)) own += static_cast<std::int64_t>(shards_[missing[i]].count);
  try {
    team_.together([&] {
      const std::string unit = team_.size > 1 ? fmt::format("{} of rank 0", unit_) : unit_;
      ImportWork work(unit.c_str(), own, team_.rank == 0);
      try {
        for (std::size_t i = 0; i < missing.size(); ++i)
          if (team_.is_own(i) && !stopped()) notes_[missing[i]] = make(shards_[missing[i]], work, done);
      } catch (...) {
        folder_.stop();
        throw;
      }
    });
  } catch (...) {
    if (team_.rank == 0) folder_.remove_unless_begun();
    throw;
  }
}

ShardHeader SharedImport::header_of(const SourceInfo& info) {
  const std::vector<double> unknown(static_cast<std::size_t>(info.sample[0]), 1.0);
  return {.classes = info.classes, .mean = unknown, .std = unknown, .value_range = {0, 0}};
}

ShardNote SharedImport::keep(const PlannedShard& shard, std::int64_t samples, const Statistics& statistics,
                             std::vector<std::int32_t> labels, ShardNote note) const {
  note.made_of = shard.made_of;
  note.bytes = std::filesystem::file_size(path(shard));
  note.samples = samples;
  note.moments = statistics.moments();
  note.labels = std::move(labels);
  folder_.write_note(shard, note);
  return note;
}

void SharedImport::share_notes() {
  Packing own;
  for (std::size_t i = 0; i < notes_.size(); ++i) {
    if (!notes_[i]) continue;
    own.put(std::uint64_t{i});
    notes_[i]->put(own);
  }
  for (const std::string& of_rank : team_.gather(own.bytes()))
    for (Unpacking packed(of_rank); !packed.done();) {
      std::uint64_t index = 0;
      packed.get(index);
      notes_[index] = ShardNote::get(packed);
    }
}

ImportWritten SharedImport::summary(const SourceInfo& info) const {
  ImportWritten written{.shards = {}, .targets = info.targets, .kept = kept_, .changed = changed_};
  ShardsWritten& shards = written.shards;
  Statistics statistics(info);
  LabelCounts counts;
  for (std::size_t i = 0; i < notes_.size(); ++i) {
    const PlannedShard& shard = shards_[i];
    const ShardNote& note = *notes_[i];
    (shard.test ? shards.held_out : shards.samples) += note.samples;
    if (!shard.test) statistics.add(note.moments);
    for (const std::int32_t label : note.labels)
      if (!shard.test) counts.add(label);
    shards.files.push_back(folder_.then(shard));
    shards.bytes += note.bytes;
    written.damaged.insert(written.damaged.end(), note.damaged.begin(), note.damaged.end());
  }
  shards.classes = info.classes;
  if (info.targets == 0) shards.empty_classes = empty_classes_text(counts, info.classes, info.class_names);
  shards.sample_shape = info.sample;
  shards.stored = info.stored;
  shards.mean = info.mean.empty() ? statistics.mean() : info.mean;
  shards.std = info.std.empty() ? statistics.std() : info.std;
  shards.value_range = statistics.value_range();
  return written;
}

ImportWritten SharedImport::finish(const SourceInfo& info, std::vector<std::string> damaged) {
  ImportWritten written = summary(info);
  written.damaged.insert(written.damaged.begin(), std::make_move_iterator(damaged.begin()),
                         std::make_move_iterator(damaged.end()));
  const ShardsWritten& shards = written.shards;
  team_.together([&] {
    for (std::size_t i = 0; i < shards_.size(); ++i)
      if (team_.is_own(i))
        h5::rewrite_attributes(path(shards_[i]), {{sample_format::kMean, shards.mean},
                                                  {sample_format::kStd, shards.std},
                                                  {sample_format::kValueRange, shards.value_range}});
  });
  team_.together([&] {
    if (team_.rank == 0) folder_.publish(written.damaged);
  });
  return written;
}

}  // namespace echelon::inline data
