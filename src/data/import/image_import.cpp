// SPDX-License-Identifier: Apache-2.0
#include "data/import/image_import.hpp"

#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/import/encoded_file.hpp"
#include "data/import/fresh_folder.hpp"
#include "data/import/image.hpp"
#include "data/import/image_plan.hpp"
#include "data/import/import_work.hpp"
#include "data/import/packed.hpp"
#include "data/import/shard_file.hpp"
#include "data/import/shared_import.hpp"
#include "data/import/statistics.hpp"

namespace echelon::inline data {
namespace {

class ImageImport {
 public:
  ImageImport(const ImageRequest& request, const ShardOptions& options, const ImportTeam& team)
      : request_(request), options_(options), team_(team), shared_(options, team, "images") {}

  ImportWritten run() {
    team_.together([&] {
      check_options(options_);
      require_free(options_.out);
      input_ = open_images(request_);
    });
    list();
    find_size();
    team_.together([&] { plan_shards(plan_, *input_, options_); });
    shared_.make(
        plan_.shards,
        [&](const PlannedShard& shard, LongWork& work, std::int64_t& done) { return make_shard(shard, work, done); },
        [&](const ShardNote& note) { return note.damaged.empty() || request_.skip_damaged; });
    ImportWritten written = shared_.finish(plan_.info, plan_.damaged);
    written.passed = plan_.passed;
    return written;
  }

 private:
  void list();
  std::vector<ImageUnit> units_of(const std::vector<std::string>& of_ranks) const;
  Image decoded(const ImageItem& item, std::string& bytes);
  void find_size();
  std::optional<ShardNote> make_shard(const PlannedShard& shard, LongWork& work, std::int64_t& done);
  std::int64_t bytes_of(const std::vector<std::size_t>& items) const;
  bool decode(const ImageItem& item, std::string& bytes, Image& image, ShardNote& note);
  void fit(const ImageItem& item, const Image& image, std::vector<std::uint8_t>& sample) const;

  const ImageRequest& request_;
  const ShardOptions& options_;
  const ImportTeam& team_;
  SharedImport shared_;
  std::unique_ptr<ImageInput> input_;
  ImagePlan plan_;
  bool scaled_ = false;
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
      if (!team_.is_own(i)) continue;
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
  std::vector<Unpacking> packed = of_same_files(of_ranks, request_.inputs[0]);
  for (std::size_t r = 0; r < packed.size(); ++r)
    for (std::size_t i = r; i < units.size(); i += packed.size())
      units[i] = get_unit(packed[r], static_cast<std::int32_t>(i));
  return units;
}

// Reads and decodes an image; throws DataError with its place.
Image ImageImport::decoded(const ImageItem& item, std::string& bytes) {
  bytes = input_->read(item);
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
        std::string bytes;
        const Image image = decoded(item, bytes);
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

// Returns none if another rank has failed meanwhile. If images turn out to be damaged, writes the shard again without
// them.
std::optional<ShardNote> ImageImport::make_shard(const PlannedShard& shard, LongWork& work, std::int64_t& done) {
  const ShardHeader header = SharedImport::header_of(plan_.info);
  ShardNote note;
  std::vector<std::size_t> items(shard.count);
  std::iota(items.begin(), items.end(), shard.first);
  std::vector<std::uint8_t> sample(sample_bytes(plan_.info));
  for (;;) {
    std::optional<ShardFile> pixels;
    std::optional<EncodedFile> files;
    if (request_.encoded)
      files.emplace(shared_.path(shard), bytes_of(items), plan_.info, header, options_);
    else
      pixels.emplace(shared_.path(shard), static_cast<std::int64_t>(items.size()), plan_.info, header, options_);
    Statistics statistics(plan_.info);
    std::vector<std::size_t> good;
    std::set<std::int32_t> labels;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const ImageItem& item = plan_.items[items[i]];
      if (i % SharedImport::kLookEvery == 0 && shared_.stopped()) return std::nullopt;
      work.at(done);
      std::string bytes;
      Image image;
      if (!decode(item, bytes, image, note)) continue;
      good.push_back(items[i]);
      labels.insert(item.label);
      if (good.size() <= i) continue;
      if (files) {
        files->append(bytes, item.label);
        add_moments_of(image, plan_.info, statistics);
      } else {
        fit(item, image, sample);
        pixels->append(sample.data(), reinterpret_cast<const std::uint8_t*>(&item.label));
        statistics.add(sample.data(), 1);
      }
      ++done;
    }
    if (good.empty())
      throw DataError(fmt::format("{}: none of its {} images can be used, the first: {}", shard.file, shard.count,
                                  note.damaged.front()));
    if (good.size() == items.size()) {
      files ? files->publish() : pixels->publish();
      return shared_.keep(shard, static_cast<std::int64_t>(good.size()), statistics, {labels.begin(), labels.end()},
                          std::move(note));
    }
    items = std::move(good);
  }
}

std::int64_t ImageImport::bytes_of(const std::vector<std::size_t>& items) const {
  std::int64_t bytes = 0;
  for (const std::size_t item : items) bytes += plan_.items[item].bytes;
  return bytes;
}

// Returns false if the image is damaged and skip_damaged is set.
bool ImageImport::decode(const ImageItem& item, std::string& bytes, Image& image, ShardNote& note) {
  try {
    image = decoded(item, bytes);
    return true;
  } catch (const DataError& error) {
    if (!request_.skip_damaged) throw;
    note.damaged.emplace_back(error.what());
    return false;
  }
}

void ImageImport::fit(const ImageItem& item, const Image& image, std::vector<std::uint8_t>& sample) const {
  const auto height = static_cast<int>(plan_.info.sample[1]), width = static_cast<int>(plan_.info.sample[2]);
  if (!scaled_ && (image.height != height || image.width != width))
    throw DataError(fmt::format(
        "{}: has {} x {} pixels (height x width), but the first image has {} x {}; --size scales all to one size",
        input_->place(item), image.height, image.width, height, width));
  fit_image(image, height, width, sample.data());
}

}  // namespace

ImportWritten write_images(const ImageRequest& request, const ShardOptions& options, const ImportTeam& team) {
  return ImageImport(request, options, team).run();
}

}  // namespace echelon::inline data
