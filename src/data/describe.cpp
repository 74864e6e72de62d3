// SPDX-License-Identifier: Apache-2.0
#include "data/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/log.hpp"
#include "base/text.hpp"

namespace echelon::inline data {

namespace {

std::string labels_text(const Dataset& dataset) {
  if (dataset.has_dense_classes())
    return fmt::format("a class of {} for each of {}", dataset.classes, dataset.label_shape.text());
  const std::string what = dataset.has_numbers()  ? counted(dataset.label_shape.elems(), "regression target")
                           : dataset.classes == 1 ? "1 class"
                                                  : fmt::format("{} classes", dataset.classes);
  return dataset.step_labels ? what + " for each step" : what;
}

}  // namespace

std::string content_text(const Dataset& dataset) {
  const std::string samples = count_text(dataset.samples());
  const std::string kinds = count_text(dataset.vocabulary.size());
  std::int64_t tokens = 0;
  for (const Shard& shard : dataset.shards) tokens += shard.tokens;
  switch (dataset.kind) {
    case DataKind::samples:
      if (dataset.encoded)
        return fmt::format("{} encoded images (the first: {}), {}", samples, dataset.sample_shape.text(),
                           labels_text(dataset));
      return fmt::format("{} samples of {}, {}, {}{}", samples, dataset.sample_shape.text(), labels_text(dataset),
                         name_of(dataset.stored),
                         dataset.stored_as.empty() ? "" : fmt::format(" (stored as {})", dataset.stored_as));
    case DataKind::text:
      return fmt::format("a text of {} tokens, {} kinds, as {} windows of {}", count_text(tokens), kinds, samples,
                         dataset.length());
    case DataKind::sequences:
      return fmt::format(
          "{}{} of up to {} steps, {}, {}",
          dataset.series ? fmt::format("{} series as ", count_text(std::ssize(*dataset.series) - 1)) : "",
          dataset.series ? counted(dataset.samples(), "window") : samples + " sequences", dataset.length(),
          dataset.form().tokens() ? kinds + " kinds of token" : counted(dataset.sample_shape[1], "feature"),
          labels_text(dataset));
    case DataKind::pairs:
      return fmt::format("{} pairs of up to {} and {} tokens, {} and {} kinds", samples, dataset.length(),
                         dataset.target_length, kinds, count_text(dataset.target_vocabulary.size()));
  }
  return {};
}

std::vector<std::string> layout_hints(const Dataset& dataset, double buffer_mb) {
  std::vector<std::string> hints;
  const auto channels = [](std::int64_t extent) { return extent == 1 || extent == 3 || extent == 4; };
  const bool chosen = dataset.hdf5 && dataset.hdf5->axes != Hdf5Config{}.axes;
  const Shape& shape = dataset.sample_shape;
  if (dataset.kind == DataKind::samples && !chosen && shape.rank() == 3 && channels(shape[2]) && !channels(shape[0]))
    hints.push_back(fmt::format("{}: samples are (C, H, W), here {}: {} channels; if they are (H, W, C), {}",
                                dataset.shards[0].path, shape.text(), shape[0],
                                dataset.hdf5 ? "say so by data.hdf5.axes" : "write them with x.transpose(0, 3, 1, 2)"));
  double chunk = 0;  // bytes
  for (const Shard& shard : dataset.shards)
    if (shard.chunk.rank() > 0 && (shard.deflate || shard.checksums))
      chunk = std::max(chunk,
                       static_cast<double>(shard.chunk.elems() * static_cast<std::int64_t>(size_of(dataset.stored))));
  // The stored chunk, its inflated and its reordered form, and its records.
  constexpr double kCopies = 2.5;
  if (kCopies * chunk > buffer_mb * (1 << 20))
    hints.push_back(
        fmt::format("{}: a chunk has {} and is decoded as a whole, which takes up to {}, more than data.buffer_mb = "
                    "{}; write chunks of 64 to 256 samples",
                    dataset.shards[0].path, bytes_text(chunk), bytes_text(kCopies * chunk), buffer_mb));
  return hints;
}

std::vector<std::string> slab_hints(const Dataset& dataset, const Slab& slab, bool changed) {
  if (!slab.samples.any()) return {};
  if (changed)
    return {
        "parallel.space: samples are changed as a whole before they are divided (data.augment, data.image_size), so "
        "that every rank of a group reads whole samples"};
  const auto holds_whole = [&](const Shard& shard) {
    return shard.chunk.rank() > 0 && (shard.deflate || shard.checksums) &&
           shard.chunk.elems() >= dataset.sample_shape.elems();
  };
  const auto found = std::find_if(dataset.shards.begin(), dataset.shards.end(), holds_whole);
  if (found == dataset.shards.end()) return {};
  return {
      fmt::format("parallel.space: {} has chunks of {}, which are decoded as a whole, so that every rank of a group "
                  "reads whole samples; echelon data import --slab-rows {} writes chunks of a few rows each",
                  found->path, found->chunk.text(), std::max<std::int64_t>(1, slab.samples.count() / 8))};
}

std::string checksums_text(const Dataset& dataset) {
  const auto with =
      std::count_if(dataset.shards.begin(), dataset.shards.end(), [](const Shard& s) { return s.checksums; });
  if (with == 0) return "none";
  if (with == std::ssize(dataset.shards)) return "all";
  return fmt::format("of {} of {} files", with, dataset.shards.size());
}

void warn_without_checksums(const Dataset& dataset, const std::string& location) {
  static std::atomic<bool> warned = false;
  const std::string text = checksums_text(dataset);
  if (text == "all" || warned.exchange(true)) return;
  log_warning("{}: checksums: {}; damage to the values is not detected ({})", location, text,
              dataset.hdf5 ? "echelon data import hdf5 writes shards that have them"
                           : "import them again, or write them with fletcher32");
}

}  // namespace echelon::inline data
