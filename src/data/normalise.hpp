// SPDX-License-Identifier: Apache-2.0
// Normalises stored values to model inputs: x = (value * scale - mean[c]) / std[c].
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.hpp"
#include "data/encoded.hpp"

namespace echelon::inline data {

// Converts u8 or f32 to f32 or f64 as value * factor[c] + offset[c] in the target type. Thread-safe.
class Normaliser {
 public:
  explicit Normaliser(const Dataset& dataset);
  // Converts one image (C, H, W); c is the channel. `dst` may be `stored` if the types are the same.
  void operator()(const std::uint8_t* stored, void* dst, DType dtype) const;
  // Converts a sequence (steps, F) stored as f32; c is the feature.
  void rows(const std::uint8_t* stored, std::int64_t steps, void* dst, DType dtype) const;

  PixelScale pixels() const { return {factor_, offset_}; }

 private:
  DType stored_;
  std::int64_t plane_;  // H * W
  template <class T>
  void change(T* image) const;

  std::vector<double> factor_;  // scale / std, per channel
  std::vector<double> offset_;  // -mean / std
};

}  // namespace echelon::inline data
