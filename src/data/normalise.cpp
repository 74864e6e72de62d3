// SPDX-License-Identifier: Apache-2.0
#include "data/normalise.hpp"

#include "base/check.hpp"

namespace echelon::inline data {
namespace {

template <class To, class From>
void convert_plane(const From* __restrict src, To* __restrict dst, std::int64_t n, To factor, To offset) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<To>(src[i]) * factor + offset;
}

template <class To, class From>
void convert(const From* src, To* dst, std::int64_t plane, const std::vector<double>& factor,
             const std::vector<double>& offset) {
  for (std::size_t c = 0; c < factor.size(); ++c) {
    const std::int64_t at = static_cast<std::int64_t>(c) * plane;
    convert_plane(src + at, dst + at, plane, static_cast<To>(factor[c]), static_cast<To>(offset[c]));
  }
}

}  // namespace

Normaliser::Normaliser(const Dataset& dataset)
    : stored_(dataset.stored), plane_(dataset.sample_shape.without_front().elems()) {
  for (std::size_t c = 0; c < dataset.mean.size(); ++c) {
    factor_.push_back(dataset.scale / dataset.std[c]);
    offset_.push_back(-dataset.mean[c] / dataset.std[c]);
  }
}

// Converts in place. Channels that stay as they are cost nothing.
template <class T>
void Normaliser::change(T* image) const {
  for (std::size_t c = 0; c < factor_.size(); ++c, image += plane_) {
    const T factor = static_cast<T>(factor_[c]), offset = static_cast<T>(offset_[c]);
    if (factor == 1 && offset == 0) continue;
    for (std::int64_t i = 0; i < plane_; ++i) image[i] = image[i] * factor + offset;
  }
}

void Normaliser::operator()(const std::uint8_t* stored, void* dst, DType dtype) const {
  if (stored == dst) {
    ECHELON_CHECK(stored_ == dtype, "values are converted in place");
    return with_float(dtype, [&]<class T>(T) { change(static_cast<T*>(dst)); });
  }
  with_float(dtype, [&](auto zero) {
    auto* to = static_cast<decltype(zero)*>(dst);
    if (stored_ == DType::u8)
      convert(stored, to, plane_, factor_, offset_);
    else
      convert(reinterpret_cast<const float*>(stored), to, plane_, factor_, offset_);
  });
}

void Normaliser::rows(const std::uint8_t* stored, std::int64_t steps, void* dst, DType dtype) const {
  const auto* src = reinterpret_cast<const float*>(stored);
  with_float(dtype, [&]<class T>(T) {
    T* to = static_cast<T*>(dst);
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::size_t f = 0; f < factor_.size(); ++f)
        *to++ = static_cast<T>(*src++) * static_cast<T>(factor_[f]) + static_cast<T>(offset_[f]);
  });
}

}  // namespace echelon::inline data
