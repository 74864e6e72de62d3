// SPDX-License-Identifier: Apache-2.0
// The form of one sample of a data set: shapes, vocabulary and labels. Together with the config it determines the
// model.
//
//   images            samples (C, H, W), one class:                  {.shape = {1, 28, 28}, .classes = 10}
//   text              tokens (T), the next token at each position:   {.shape = {64}, .vocabulary = 65, .label = {64},
//                                                                     .classes = 65}
//   sequences         features (T, F) or tokens (T), `lengths` where they are unlike (padded to T), one class
//   series            the same with a target for each step: .label = {T} or {T, K}
//   pairs of texts    tokens (T) and a second text `target` (U) that a decoder is fed; labels (U): its next tokens
//   numbers           any shape, `label` real numbers:               {.shape = {8}, .label = {1}, .classes = 0}
#pragma once

#include <cstdint>

#include "base/shape.hpp"

namespace echelon::inline base {

struct SampleForm {
  Shape shape{};                // shape of "samples", without N
  std::int64_t vocabulary = 0;  // > 0: samples are tokens in [0, vocabulary), else real numbers
  Shape label{};                // shape of "labels": () one per sample, (T) one per token, (H, W) one per pixel
  std::int64_t classes = 0;     // labels are in [0, classes); 0: real numbers
  bool lengths = false;         // sequences of different lengths, padded: the model gets "lengths" ()
  bool stream = false;          // row n of a batch continues that of the last batch: recurrent state is kept
  bool dense = false;           // a class for every place of the sample: logits are (classes, ..) by channel
  bool mixes = false;           // in training samples have a second class with a weight: "others", "other_weights"
  std::int64_t target = 0;      // > 0: the length of the second text "target", tokens in [0, classes)

  bool tokens() const { return vocabulary > 0; }
  friend bool operator==(const SampleForm&, const SampleForm&) = default;
};

// Samples of real numbers with one class each: images, or plain features.
inline SampleForm labelled(const Shape& shape, std::int64_t classes) { return {.shape = shape, .classes = classes}; }

}  // namespace echelon::inline base
