// SPDX-License-Identifier: Apache-2.0
// Dropout in every layout: forward and backward both compute the mask by hashing, so nothing is saved.
#include <cmath>

#include "base/hash_rng.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

// T is the type of activations, float or BHalf.
template <class T>
class Dropout final : public Op {
 public:
  Dropout(const Context& context, const OpSpec& spec)
      : shape_(std::get<DropoutDims>(spec.dims).shape),
        // A whole sample in plain layout is one plane, whatever its axes.
        channels_(spec.layouts[0] == Layout::plain && std::get<DropoutDims>(spec.dims).plane == 0 ? 1 : shape_[1]),
        pixels_(shape_.row_elems() / channels_),
        plane_(std::get<DropoutDims>(spec.dims).plane > 0 ? std::get<DropoutDims>(spec.dims).plane : pixels_),
        planes_(channels_, spec.layouts[0]),
        threshold_(static_cast<std::uint64_t>(std::ceil(std::get<DropoutDims>(spec.dims).rate * 0x1.0p53))),
        first_(std::get<DropoutDims>(spec.dims).first),
        factor_(static_cast<float>(1 / (1 - std::get<DropoutDims>(spec.dims).rate))),
        threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }

  void run(const OpArgs& args) override {
    const auto* x = static_cast<const T*>(args.tensors[0]);
    const auto* ids = static_cast<const std::int32_t*>(args.tensors[1]);
    auto* y = static_cast<T*>(args.tensors[2]);
    const bool add = (args.accumulate & 4U) != 0;
    for_each_plane(threads_, shape_[0], planes_, shape_.elems(), [&]<int kLanes>(std::int64_t n, std::int64_t c) {
      const std::uint64_t key = HashRng(args.key).at(static_cast<std::uint32_t>(ids[n])).key();
      const std::int64_t first = planes_.offset(n, c, pixels_);
      add ? pass<kLanes, true>(key, c, x + first, y + first) : pass<kLanes, false>(key, c, x + first, y + first);
    });
  }

 private:
  // Zero lanes behind the last channel stay zero, whether dropped or not.
  template <int kLanes, bool kAdd>
  void pass(std::uint64_t key, std::int64_t c, const T* x, T* y) const {
    const std::int64_t pixel = planes_.pixel();
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto index = static_cast<std::uint64_t>(first_ + (c + lane) * plane_);
#pragma omp simd
      for (std::int64_t i = 0; i < pixels_; ++i) {
        const std::uint64_t bits = hash_combine(key, index + static_cast<std::uint64_t>(i)) >> 11;
        const float value = bits >= threshold_ ? widened(x[i * pixel + lane]) * factor_ : 0.0f;
        T& to = y[i * pixel + lane];
        to = rounded_to<T>(kAdd ? widened(to) + value : value);
      }
    }
  }

  Shape shape_;
  std::int64_t channels_, pixels_, plane_;
  Planes planes_;
  std::uint64_t threshold_;  // 53 bits: values below it become zero
  std::int64_t first_;
  float factor_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_dropout(Context& context, const OpSpec& spec) {
  return make_stored<Dropout>(spec.dtype, context, spec);
}

}  // namespace echelon::inline device::onednn
