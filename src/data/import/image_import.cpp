// SPDX-License-Identifier: Apache-2.0
#include "data/import/image_import.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/format.hpp"
#include "data/import/fresh_folder.hpp"
#include "data/import/image.hpp"
#include "data/import/image_plan.hpp"
#include "data/import/import_folder.hpp"
#include "data/import/import_work.hpp"
#include "data/import/packed.hpp"
#include "data/import/shard_file.hpp"
#include "data/import/statistics.hpp"
#include "data/label_counts.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {
namespace {

constexpr std::size_t kLookEvery = 16;  // images between checks whether another rank has failed

class ImageImport {
 public:
  ImageImport(const ImageRequest& request, const ShardOptions& options, const ImportTeam& team)
      : request_(request), options_(options), team_(team), folder_(options.out) {}

  ImagesWritten run() {
    team_.together([&] {
      check_options(options_);
      require_free(options_.out);
      input_ = open_images(request_);
    });
    list();
    find_size();
    team_.together([&] { plan_shards(plan_, *input_, options_); });
    team_.together([&] {
      if (team_.rank != 0) return;
      make_folders(folder_.path());
      team_.hold(folder_.path());
      folder_.prepare(plan_.shards);
    });
    notes_.resize(plan_.shards.size());
    make(missing());
    share_notes();
    return finish();
  }

 private:
  bool is_own(std::size_t index) const {
    return index % static_cast<std::size_t>(team_.size) == static_cast<std::size_t>(team_.rank);
  }

  void list();
  std::vector<ImageUnit> units_of(const std::vector<std::string>& of_ranks) const;
  Image decoded(const ImageItem& item);
  void find_size();
  std::vector<std::size_t> missing();
  void make(const std::vector<std::size_t>& missing);
  std::optional<ShardNote> make_shard(const PlannedShard& shard, LongWork& work, std::int64_t& done);
  bool read_sample(const ImageItem& item, std::vector<std::uint8_t>& sample, ShardNote& note);
  void share_notes();
  ImagesWritten finish();

  const ImageRequest& request_;
  const ShardOptions& options_;
  const ImportTeam& team_;
  const ImportFolder folder_;
  std::unique_ptr<ImageInput> input_;
  ImagePlan plan_;
  bool scaled_ = false;
  std::vector<std::optional<ShardNote>> notes_;  // [shard]; first of this rank, then of all
  std::int64_t kept_ = 0;
};

void ImageImport::list() {
  Packing own;
  team_.together([&] {
    Packing names;
    names.put(input_->units());
    own.put(checksum64(names.bytes()));
    std::int64_t images = 0;
    ImportWork work("images", 0, team_.rank == 0);
    for (std::size_t i = 0; i < input_->units().size(); ++i) {
      if (!is_own(i)) continue;
      const ImageUnit unit = input_->list(i);
      put(own, unit);
      work.at(images += static_cast<std::int64_t>(unit.items.size()));
    }
  });
  const std::vector<std::string> of_ranks = team_.gather(own.bytes());
  team_.together([&] { plan_ = plan_images(units_of(of_ranks), *input_, request_); });
}

std::vector<ImageUnit> ImageImport::units_of(const std::vector<std::string>& of_ranks) const {
  std::vector<ImageUnit> units(input_->units().size());
  std::uint64_t names = 0;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    Unpacking packed(of_ranks[r]);
    std::uint64_t seen = 0;
    packed.get(seen);
    if (r > 0 && seen != names)
      throw EnvironmentError(
          fmt::format("{}: rank {} does not see the same files as rank 0; is this folder shared "
                      "between the hosts?",
                      request_.inputs[0], r));
    names = seen;
    for (std::size_t i = r; i < units.size(); i += of_ranks.size())
      units[i] = get_unit(packed, static_cast<std::int32_t>(i));
  }
  return units;
}

// Decodes an image; throws DataError with its place.
Image ImageImport::decoded(const ImageItem& item) {
  const std::string bytes = input_->read(item);
  try {
    return decode_image(bytes, request_.channels);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", input_->place(item), error.what()));
  }
}

// Takes the size of the first image that can be decoded, unless --size was given.
void ImageImport::find_size() {
  scaled_ = plan_.info.sample[1] > 0;
  if (scaled_) return;
  Packing own;
  team_.together([&] {
    if (team_.rank != 0) return;
    for (const ImageItem& item : plan_.items) {
      try {
        const Image image = decoded(item);
        own.put(std::int64_t{image.height});
        own.put(std::int64_t{image.width});
        return;
      } catch (const DataError&) {
        if (!request_.skip_damaged) throw;
      }
    }
    throw DataError(fmt::format("{}: holds no image that can be decoded", request_.inputs[0]));
  });
  const std::vector<std::string> of_ranks = team_.gather(own.bytes());
  Unpacking packed(of_ranks[0]);
  std::int64_t height = 0, width = 0;
  packed.get(height);
  packed.get(width);
  plan_.info.sample = {request_.channels, height, width};
}

// Returns the shards that are missing; reads this rank's share of the notes of the others.
std::vector<std::size_t> ImageImport::missing() {
  std::string own(plan_.shards.size(), '0');
  team_.together([&] {
    for (std::size_t i = 0; i < plan_.shards.size(); ++i) {
      if (!is_own(i)) continue;
      notes_[i] = folder_.note_of(plan_.shards[i]);
      if (notes_[i] && !notes_[i]->damaged.empty() && !request_.skip_damaged) notes_[i].reset();
      if (notes_[i]) own[i] = '1';
    }
  });
  std::vector<std::size_t> missing;
  std::set<std::string> kept;
  const std::vector<std::string> of_ranks = team_.gather(own);
  for (std::size_t i = 0; i < plan_.shards.size(); ++i)
    if (of_ranks[i % of_ranks.size()][i] == '1')
      kept.insert(plan_.shards[i].file);
    else
      missing.push_back(i);
  kept_ = static_cast<std::int64_t>(kept.size());
  team_.together([&] {
    if (team_.rank == 0) folder_.keep_only(kept);
  });
  return missing;
}

void ImageImport::make(const std::vector<std::size_t>& missing) {
  std::int64_t own = 0, done = 0;
  for (std::size_t i = 0; i < missing.size(); ++i)
    if (is_own(i)) own += static_cast<std::int64_t>(plan_.shards[missing[i]].count);
  try {
    team_.together([&] {
      ImportWork work(team_.size > 1 ? "images of rank 0" : "images", own, team_.rank == 0);
      try {
        for (std::size_t i = 0; i < missing.size(); ++i)
          if (is_own(i) && !folder_.stopped()) notes_[missing[i]] = make_shard(plan_.shards[missing[i]], work, done);
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

// Returns none if another rank has failed meanwhile. If images turn out to be damaged, writes the shard again without
// them.
std::optional<ShardNote> ImageImport::make_shard(const PlannedShard& shard, LongWork& work, std::int64_t& done) {
  const std::vector<double> unknown(static_cast<std::size_t>(request_.channels), 1.0);
  const ShardHeader header{
      .classes = plan_.info.classes, .mean = unknown, .std = unknown, .value_range = {0, 0}};  // replaced in finish()
  ShardNote note{.made_of = shard.made_of};
  std::vector<std::size_t> items(shard.count);
  std::iota(items.begin(), items.end(), shard.first);
  std::vector<std::uint8_t> sample(sample_bytes(plan_.info));
  for (;;) {
    ShardFile file(folder_.now(shard), static_cast<std::int64_t>(items.size()), plan_.info, header, options_);
    Statistics statistics(plan_.info);
    std::vector<std::size_t> good;
    std::set<std::int32_t> labels;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const ImageItem& item = plan_.items[items[i]];
      if (i % kLookEvery == 0 && folder_.stopped()) return std::nullopt;
      work.at(done);
      if (!read_sample(item, sample, note)) continue;
      good.push_back(items[i]);
      labels.insert(item.label);
      if (good.size() <= i) continue;
      file.append(sample.data(), reinterpret_cast<const std::uint8_t*>(&item.label));
      statistics.add(sample.data(), 1);
      ++done;
    }
    if (good.empty())
      throw DataError(fmt::format("{}: none of its {} images can be used, the first: {}", shard.file, shard.count,
                                  note.damaged.front()));
    if (good.size() == items.size()) {
      file.publish();
      note.bytes = std::filesystem::file_size(folder_.now(shard));
      note.samples = static_cast<std::int64_t>(good.size());
      note.moments = statistics.moments();
      note.labels.assign(labels.begin(), labels.end());
      folder_.write_note(shard, note);
      return note;
    }
    items = std::move(good);
  }
}

// Returns false if the image is damaged and skip_damaged is set.
bool ImageImport::read_sample(const ImageItem& item, std::vector<std::uint8_t>& sample, ShardNote& note) {
  const auto height = static_cast<int>(plan_.info.sample[1]), width = static_cast<int>(plan_.info.sample[2]);
  Image image;
  try {
    image = decoded(item);
  } catch (const DataError& error) {
    if (!request_.skip_damaged) throw;
    note.damaged.emplace_back(error.what());
    return false;
  }
  if (!scaled_ && (image.height != height || image.width != width))
    throw DataError(fmt::format(
        "{}: has {} x {} pixels (height x width), but the first image has {} x {}; --size scales all to one size",
        input_->place(item), image.height, image.width, height, width));
  fit_image(image, height, width, sample.data());
  return true;
}

void ImageImport::share_notes() {
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

ImagesWritten ImageImport::finish() {
  ImagesWritten written{.shards = {}, .kept = kept_, .damaged = plan_.damaged, .passed = plan_.passed};
  ShardsWritten& shards = written.shards;
  Statistics statistics(plan_.info);
  LabelCounts counts;
  for (std::size_t i = 0; i < notes_.size(); ++i) {
    const PlannedShard& shard = plan_.shards[i];
    const ShardNote& note = *notes_[i];
    (shard.test ? shards.held_out : shards.samples) += note.samples;
    if (!shard.test) statistics.add(note.moments);
    for (const std::int32_t label : note.labels)
      if (!shard.test) counts.add(label);
    shards.files.push_back(folder_.then(shard));
    shards.bytes += note.bytes;
    written.damaged.insert(written.damaged.end(), note.damaged.begin(), note.damaged.end());
  }
  shards.classes = plan_.info.classes;
  shards.empty_classes = empty_classes_text(counts, plan_.info.classes, plan_.info.class_names);
  shards.sample_shape = plan_.info.sample;
  shards.stored = plan_.info.stored;
  shards.mean = plan_.info.mean.empty() ? statistics.mean() : plan_.info.mean;
  shards.std = plan_.info.std.empty() ? statistics.std() : plan_.info.std;
  shards.value_range = statistics.value_range();
  team_.together([&] {
    for (std::size_t i = 0; i < plan_.shards.size(); ++i)
      if (is_own(i))
        h5::rewrite_attributes(folder_.now(plan_.shards[i]), {{sample_format::kMean, shards.mean},
                                                              {sample_format::kStd, shards.std},
                                                              {sample_format::kValueRange, shards.value_range}});
  });
  team_.together([&] {
    if (team_.rank == 0) folder_.publish(written.damaged);
  });
  return written;
}

}  // namespace

ImagesWritten write_images(const ImageRequest& request, const ShardOptions& options, const ImportTeam& team) {
  return ImageImport(request, options, team).run();
}

}  // namespace echelon::inline data
