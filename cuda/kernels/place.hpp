// SPDX-License-Identifier: Apache-2.0
// Positions of the elements of images (N, C, elems) in memory, for each layout.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/layout.hpp"

namespace echelon::cuda {

struct Spot {
  std::int64_t n, c, i;  // i counts the image's elements
};

struct Place {
  std::int64_t C, elems;
  Layout layout;

  __device__ std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t i) const {
    if (layout == Layout::plain) return (n * C + c) * elems + i;
    if (layout == Layout::channels_last) return (n * elems + i) * C + c;
    const std::int64_t block = layout == Layout::blocked8 ? 8 : 16;
    const std::int64_t blocks = (C + block - 1) / block;
    return ((n * blocks + c / block) * elems + i) * block + c % block;
  }
  // Returns the element at an index of memory; for plain and channels_last.
  __device__ Spot spot(std::int64_t index) const {
    if (layout == Layout::channels_last) return {index / (C * elems), index % C, index / C % elems};
    return {index / (C * elems), index / elems % C, index % elems};
  }
};

// One channel of one image: element i is plane[i].
template <class T>
struct Plane {
  T* first;
  std::int64_t step;

  __device__ Plane(T* data, const Place& place, const Spot& spot)
      : first(data + place.at(spot.n, spot.c, 0)), step(place.layout == Layout::channels_last ? place.C : 1) {}
  __device__ T& operator[](std::int64_t i) const { return first[i * step]; }
};

}  // namespace echelon::cuda
