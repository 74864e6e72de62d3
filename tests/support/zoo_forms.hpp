// SPDX-License-Identifier: Apache-2.0
// Forms of samples for ready-made models on small images and volumes.
#pragma once

#include "model/zoo/zoo.hpp"

namespace echelon::test {

// The published form with `side` places along every axis of images and volumes, and of labels that have a class for
// every place. Other samples stay as they are.
inline SampleForm zoo_form_of_side(std::string_view name, std::int64_t side) {
  const SampleForm form = zoo_form(name);
  if (form.tokens() || form.shape.rank() < 3) return form;
  Shape sample = form.shape;
  for (int axis = 1; axis < sample.rank(); ++axis) sample = sample.with(axis, side);
  return zoo_form(name, sample);
}

}  // namespace echelon::test
