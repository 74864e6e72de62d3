// SPDX-License-Identifier: Apache-2.0
#include "data/augment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "data/colour.hpp"
#include "data/erase.hpp"
#include "data/planes.hpp"
#include "data/turn.hpp"

namespace echelon::inline data {
namespace {

struct Move {
  std::int64_t back, down, right;  // position of the window; if negative, zeros enter in front, above or at the left
  bool flip;
};

template <class T>
void move_plane(const T* src, T* dst, std::int64_t height, std::int64_t width, const Move& move) {
  for (std::int64_t h = 0; h < height; ++h, dst += width) {
    const std::int64_t from = h + move.down;
    std::fill(dst, dst + width, T{});
    if (from < 0 || from >= height) continue;
    const std::int64_t begin = std::max<std::int64_t>(0, -move.right);
    const std::int64_t end = std::min(width, width - move.right);
    if (begin < end)
      std::copy(src + from * width + begin + move.right, src + from * width + end + move.right, dst + begin);
    if (move.flip) std::reverse(dst, dst + width);
  }
}

// The streams of draws besides those of shifts, which have the sample's own.
enum Stream : std::uint64_t { kWindow = 16, kTurn, kColours, kErase, kCutout };

void shift_sample(const Augmentation& augmentation, const HashRng& draws, const void* src, void* dst,
                  const Shape& shape, DType dtype) {
  const std::int64_t padding = augmentation.crop_padding;
  const auto shift = [&](std::uint64_t draw) {
    return static_cast<std::int64_t>(draws.below(draw, static_cast<std::uint64_t>(2 * padding + 1))) - padding;
  };
  const int axes = shape.rank() - 1;
  const Move move{axes > 2 ? shift(3) : 0, axes > 1 ? shift(0) : 0, shift(1),
                  augmentation.flip && draws.below(2, 2) == 1};
  const Planes planes = planes_of(shape);
  const std::int64_t plane = planes.height * planes.width;
  with_float(dtype, [&]<class T>(T) {
    const T* from = static_cast<const T*>(src);
    T* to = static_cast<T*>(dst);
    for (std::int64_t c = 0; c < planes.channels; ++c, from += planes.depth * plane)
      for (std::int64_t z = 0; z < planes.depth; ++z, to += plane) {
        const std::int64_t slice = z + move.back;
        if (slice >= 0 && slice < planes.depth)
          move_plane(from + slice * plane, to, planes.height, planes.width, move);
        else
          std::fill(to, to + plane, T{});
      }
  });
}

}  // namespace

Augmentation augmentation_of(const DataConfig& config, std::uint64_t seed) {
  return {
      .crop_padding = config.augment_crop_padding, .flip = config.augment_flip, .keys = config.augment, .seed = seed};
}

// The part of an image that the model sees.
SeenPart Augmenter::part_of(const HashRng& draws, std::int64_t height, std::int64_t width) const {
  const AugmentKeys& keys = augmentation_.keys;
  if (!keys.crops()) return central_part(height, width, view_);
  const Shape seen = view_.shape_of({1, height, width});
  return {.window = random_window(draws.at(kWindow), height, width,
                                  {.least_scale = keys.crop_scale.front(),
                                   .most_scale = keys.crop_scale.back(),
                                   .least_ratio = keys.crop_ratio.front(),
                                   .most_ratio = keys.crop_ratio.back()}),
          .full = {.height = seen[1], .width = seen[2]}};
}

// Colours are of values in [0, 1], and normalised values come and go.
void Augmenter::jitter(const HashRng& draws, void* image, const Shape& shape, DType dtype) const {
  const std::int64_t plane = shape[1] * shape[2];
  with_float(dtype, [&]<class T>(T) {
    const auto each = [&](const auto& value_of) {
      T* values = static_cast<T*>(image);
      for (std::int64_t c = 0; c < shape[0]; ++c) {
        const auto at = static_cast<std::size_t>(c);
        const T mean = static_cast<T>(scale_.mean[at]), std = static_cast<T>(scale_.std[at]);
        for (std::int64_t i = 0; i < plane; ++i, ++values) *values = value_of(*values, mean, std);
      }
    };
    each([](T x, T mean, T std) { return x * std + mean; });
    jitter_colours(augmentation_.keys, draws, image, shape, dtype);
    each([](T x, T mean, T std) { return (x - mean) / std; });
  });
}

void Augmenter::erase(const HashRng& draws, void* sample, const Shape& shape, DType dtype) const {
  const AugmentKeys& keys = augmentation_.keys;
  const Planes planes = planes_of(shape);
  with_float(dtype, [&]<class T>(T) {
    const auto clear = [&](std::int64_t at, std::int64_t count) {
      std::fill_n(static_cast<T*>(sample) + at, count, T{});
    };
    if (keys.erase > 0) each_run(planes, erased_box(keys, draws.at(kErase), planes), clear);
    if (keys.cutout > 0) each_run(planes, cutout_box(keys, draws.at(kCutout), shape), clear);
  });
}

template <class See>
void Augmenter::change(const HashRng& draws, const void* src, void* dst, const Shape& seen, DType dtype, bool sees,
                       const See& see) {
  const AugmentKeys& keys = augmentation_.keys;
  const auto bytes = static_cast<std::size_t>(seen.elems()) * size_of(dtype);
  int left = augmentation_.passes(sees);
  if (left == 0 && src != nullptr) std::memcpy(dst, src, bytes);
  const void* at = src;
  const auto next = [&]() -> void* {
    std::vector<double>& memory = between_[left % 2];
    if (--left == 0) return dst;
    memory.resize(static_cast<std::size_t>(seen.elems()));
    return memory.data();
  };
  if (sees) {
    void* const to = next();
    see(to);
    at = to;
  }
  if (augmentation_.moves()) {
    void* const to = next();
    shift_sample(augmentation_, draws, at, to, seen, dtype);
    at = to;
  }
  if (keys.turns()) turn(random_turn(keys, draws.at(kTurn)), at, next(), seen, dtype);
  if (keys.jitters()) jitter(draws.at(kColours), dst, seen, dtype);
  if (keys.erases()) erase(draws, dst, seen, dtype);
}

void Augmenter::operator()(const void* src, void* dst, const Shape& shape, DType dtype, std::int64_t epoch,
                           std::int64_t id) {
  const HashRng draws = rng_.at(static_cast<std::uint64_t>(epoch)).at(static_cast<std::uint64_t>(id));
  const Shape seen = view_.shape_of(shape);
  change(draws, src, dst, seen, dtype, view_.any() || augmentation_.keys.crops(), [&](void* to) {
    const SeenPart part = part_of(draws, shape[1], shape[2]);
    resize(src, shape, part.window, part.full, to, seen, dtype);
  });
}

void Augmenter::encoded(std::string_view bytes, const PixelScale& pixels, void* dst, const Shape& shape, DType dtype,
                        std::int64_t epoch, std::int64_t id) {
  const HashRng draws = rng_.at(static_cast<std::uint64_t>(epoch)).at(static_cast<std::uint64_t>(id));
  const Shape seen = view_.shape_of(shape);
  const auto part = [&](std::int64_t height, std::int64_t width) -> SeenPart {
    if (view_.any()) return part_of(draws, height, width);
    if (height != shape[1] || width != shape[2])
      throw DataError(
          fmt::format("has {} x {} pixels (height x width), but the first image has {} x {}; "
                      "data.image_size says what the model sees of images of any size",
                      height, width, shape[1], shape[2]));
    if (augmentation_.keys.crops()) return part_of(draws, height, width);
    return {.window = {.top = 0, .left = 0, .height = height, .width = width},
            .full = {.height = height, .width = width}};
  };
  change(draws, nullptr, dst, seen, dtype, true, [&](void* to) { see_encoded(bytes, part, pixels, to, seen, dtype); });
}

}  // namespace echelon::inline data
