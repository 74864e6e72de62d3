// SPDX-License-Identifier: Apache-2.0
#include "data/read_memory.hpp"

#include <algorithm>

#include "data/format.hpp"
#include "data/import/image.hpp"
#include "data/sample_file.hpp"
#include "h5/decode_memory.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {
namespace {

constexpr std::size_t kMostFiles = 64;  // inspects at most this many files, evenly spread

double decoding_of(const Dataset& dataset) {
  if (dataset.encoded && dataset.hdf5) return 0;  // bytes are read as they are
  const std::string rows = dataset.hdf5                        ? dataset.hdf5->samples.front()
                           : dataset.encoded                   ? sample_format::kBytes
                           : dataset.kind == DataKind::samples ? sample_format::kSamples
                           : dataset.vocabulary.size() > 0     ? sample_format::kTokens
                                                               : sample_format::kValues;
  const std::size_t files = std::min(dataset.shards.size(), kMostFiles);
  double most = 0;
  for (std::size_t i = 0; i < files; ++i)
    most = std::max(most, h5::decode_bytes(dataset.shards[i * dataset.shards.size() / files].path, rows));
  return most;
}

// The most pixels that are decoded of an image: of a large JPEG a smaller one, or a part. A window whose shorter side
// is just under twice the size that is asked for is not shrunk.
double decoded_pixels(const Shape& image, const ImageView& view, const AugmentKeys& keys) {
  const auto pixels = static_cast<double>(image[1] * image[2]);
  const double share = keys.crops() ? keys.crop_scale.back() : 1;
  if (!view.any()) return share * pixels;
  const Resized full =
      keys.crops() ? Resized{.height = view.height, .width = view.width} : central_part(image[1], image[2], view).full;
  const auto shrunk = static_cast<double>(decoded_smaller(
      {.whole_height = image[1], .whole_width = image[2], .least_height = full.height, .least_width = full.width}));
  const double whole = share * pixels / (shrunk * shrunk);
  if (!keys.crops()) return whole;
  const auto high = static_cast<double>(full.height), wide = static_cast<double>(full.width);
  const double unshrunk = std::max(4 * high * high * keys.crop_ratio.back(), 4 * wide * wide / keys.crop_ratio.front());
  return std::max(whole, std::min(share * pixels, unshrunk));
}

// Bytes of an image while it is decoded.
double decoded_bytes(const Dataset& dataset, const AugmentKeys& keys) {
  const SampleFile file(dataset, dataset.shards.front());
  std::vector<std::uint8_t> first;
  std::vector<std::size_t> ends;
  file.read_encoded(0, 1, first, ends);
  const bool is_png = !first.empty() && first.front() == 0x89;  // decoded whole
  const Shape& image = dataset.sample_shape;
  return static_cast<double>(image[0]) *
         (is_png ? static_cast<double>(image[1] * image[2]) : decoded_pixels(image, dataset.view, keys));
}

// Memory of the threads that make `n` samples of one shape (Collator, Augmenter, RowMakers).
double making_of(const Dataset& dataset, std::int64_t n, const LoaderOptions& options) {
  if (dataset.kind != DataKind::samples) return 0;
  const Augmentation& changes = options.augmentation;
  const auto element = static_cast<double>(size_of(options.dtype));
  const auto whole = static_cast<double>(dataset.sample_shape.elems());
  const auto seen = static_cast<double>(dataset.view.shape_of(dataset.sample_shape).elems());
  const bool sees = dataset.encoded || dataset.view.any() || changes.keys.crops();
  double each = sizeof(double) * seen * std::clamp(changes.passes(sees) - 1, 0, 2);
  if (dataset.encoded)
    each += decoded_bytes(dataset, changes.keys);
  else if (changes.any() || dataset.view.any())
    each += element * whole;
  if (dataset.kept.any()) each += element * seen;
  if (changes.keys.mixes()) each += element * static_cast<double>(dataset.seen_shape().elems());
  const double kept = options.threads > 1 ? static_cast<double>(n) * static_cast<double>(dataset.record_bytes()) : 0;
  return options.threads * each + kept;
}

}  // namespace

ReadMemory read_memory(const Dataset& dataset, std::int64_t n, const LoaderOptions& options) {
  std::int64_t longest = 1;
  for (const Shard& shard : dataset.shards) longest = std::max(longest, shard.rows_together());
  const auto record = static_cast<double>(dataset.record_bytes());
  const double chunk = static_cast<double>(longest) * record;
  const double all = static_cast<double>(dataset.samples()) * record,
               buffer = static_cast<double>(options.buffer_bytes);
  const bool passing = longest == 1 && !dataset.mixes && all > buffer;  // one record is held after the other
  const auto element = static_cast<double>(dataset.vocabulary.size() > 0 ? 4 : size_of(options.dtype));
  return {.records = passing ? chunk : std::min(all, std::max(chunk, buffer)),
          .decoding = decoding_of(dataset) + (dataset.hdf5 ? chunk : 0),  // with its axes as they are stored
          .making = making_of(dataset, n, options),
          .batches = static_cast<double>((options.prefetch + 1) * n * dataset.seen_shape().elems()) * element,
          .at_once = dataset.samples() <= longest};
}

}  // namespace echelon::inline data
