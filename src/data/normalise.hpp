// Stored values to what the model computes on: x = (value * scale - mean[c]) / std[c].
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.hpp"

namespace echelon::inline data {

// One sample at a time, u8 or f32 to f32 or f64, as value * factor[c] + offset[c] in the target type.
class Normaliser {
 public:
  explicit Normaliser(const Dataset& dataset);
  // (C, H, W), c being the channel.
  void operator()(const std::uint8_t* stored, void* dst, DType dtype) const;
  // `steps` rows of F numbers, f32, c being the feature.
  void rows(const std::uint8_t* stored, std::int64_t steps, void* dst, DType dtype) const;

 private:
  DType stored_;
  std::int64_t plane_;          // H * W
  std::vector<double> factor_;  // scale / std, by channel
  std::vector<double> offset_;  // -mean / std
};

}  // namespace echelon::inline data
