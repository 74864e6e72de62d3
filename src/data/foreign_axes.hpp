// SPDX-License-Identifier: Apache-2.0
// Guesses the axes of a dataset from its shape.
#pragma once

#include <string>

#include "base/shape.hpp"

namespace echelon::inline data {

// Returns letters for data.hdf5.axes, as many as the shape has axes where that is possible. `one_sample`: the file is
// one sample, so that there is no N. An axis of few entries at either end is taken for channels.
std::string likely_axes(const Shape& shape, bool one_sample);

}  // namespace echelon::inline data
