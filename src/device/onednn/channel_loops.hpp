// SPDX-License-Identifier: Apache-2.0
// Loops over activations whose body depends on the channel, with explicit vectors. They visit each float once, or
// compute two sums per channel in double. A body is an object with
//   at(c, start)                            the body for a plane whose first channel is c, its first float `start`
//   operator()<L, kOneChannel>(i, lane, ..)  the floats of L's lanes from float i of the plane on; they are channels
//                                           c + lane, .. or, with kOneChannel, all of channel c
#pragma once

#include <algorithm>

#include "device/onednn/lanes.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {

inline constexpr std::int64_t kSumParts = 16;  // largest number of parts of the batch; enough for the cores of one rank

// Values of L's lanes: one per channel, or the first one's for all (if the lanes are pixels of one channel).
template <class L, bool kOneChannel, class T>
auto of_channels(const T* values) {
  using Vector = std::conditional_t<std::is_same_v<T, double>, typename L::Doubles, typename L::Floats>;
  if constexpr (kOneChannel) return Vector{} + *values;
  Vector v;
  std::memcpy(&v, values, sizeof v);
  return v;
}

// add_plane for terms that declare kInRuns, those of bf16: they are added in f32 over a run of pixels, and the sums of
// runs are added in double. The terms themselves were rounded 2^16 times as coarsely as these sums are.
template <int kLanes, class Term>
void add_plane_in_runs(std::int64_t pixels, std::int64_t pixel, const Term& term, double* first, double* second) {
  using Eight = Lanes<8>;
  constexpr std::int64_t kRun = 64;
  constexpr int kEights = kLanes / 8;
  for (std::int64_t begin = 0; begin < pixels; begin += kRun) {
    typename Eight::Floats a[kEights] = {}, b[kEights] = {};
    for (std::int64_t i = begin; i < std::min(begin + kRun, pixels); ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kEights; ++v) term.template operator()<Eight, false>(i * pixel + 8 * v, 8 * v, a[v], b[v]);
    for (int l = 0; l < kLanes; ++l)
      first[l] += static_cast<double>(a[l / 8][l % 8]), second[l] += static_cast<double>(b[l / 8][l % 8]);
  }
}

// Adds term<L, kOneChannel>(float index, lane of the plane, first, second) over the pixels of one plane.
template <int kLanes, class Term>
void add_plane(std::int64_t pixels, std::int64_t pixel, const Term& term, double* first, double* second) {
  using Four = Lanes<4>;
  using One = Lanes<1>;
  std::int64_t i = 0;
  if constexpr (kLanes > 1 && Term::kInRuns) {
    add_plane_in_runs<kLanes>(pixels, pixel, term, first, second);
  } else if constexpr (kLanes > 1) {
    constexpr int kFours = kLanes / 4;
    typename Four::Doubles a[kFours] = {}, b[kFours] = {};
    for (; i < pixels; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kFours; ++v) term.template operator()<Four, false>(i * pixel + 4 * v, 4 * v, a[v], b[v]);
    for (int l = 0; l < kLanes; ++l) first[l] += a[l / 4][l % 4], second[l] += b[l / 4][l % 4];
  } else {
    typename Four::Doubles a[2] = {}, b[2] = {};
    for (; pixel == 1 && i + 8 <= pixels; i += 8) {
      term.template operator()<Four, true>(i, 0, a[0], b[0]);
      term.template operator()<Four, true>(i + 4, 0, a[1], b[1]);
    }
    typename One::Doubles last_a{}, last_b{};
    for (; i < pixels; ++i) term.template operator()<One, true>(i * pixel, 0, last_a, last_b);
    for (int l = 0; l < 4; ++l) last_a[0] += a[0][l] + a[1][l], last_b[0] += b[0][l] + b[1][l];
    *first += last_a[0];
    *second += last_b[0];
  }
}

// Runs body<L, kOneChannel>(float index, lane) over every float of one plane.
template <int kLanes, class Body>
void walk_plane(std::int64_t pixels, std::int64_t pixel, const Body& body) {
  using Eight = Lanes<8>;
  std::int64_t i = 0;
  if constexpr (kLanes > 1) {
    for (; i < pixels; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kLanes; v += 8) body.template operator()<Eight, false>(i * pixel + v, v);
  } else {
    for (; pixel == 1 && i + 8 <= pixels; i += 8) body.template operator()<Eight, true>(i, 0);
    for (; i < pixels; ++i) body.template operator()<Lanes<1>, true>(i * pixel, 0);
  }
}

// Runs the body over every float of an activation (N, C, pixels), including padding of blocks; channels-last
// activations are visited pixel by pixel, in memory order.
template <class Body>
void walk(int threads, std::int64_t N, std::int64_t C, std::int64_t pixels, const Planes& planes, const Body& body) {
  if (planes.channels_last()) {
    const Body all = body.at(0, 0);
#pragma omp parallel for num_threads(threads) if (threads > 1 && N * C * pixels >= kParallelElems) schedule(static)
    for (std::int64_t i = 0; i < N * pixels; ++i)
      over_lanes(C, [&]<int kLanes>(std::int64_t c) {
        all.template operator()<Lanes<kLanes>, false>(i * C + c, static_cast<int>(c));
      });
    return;
  }
  for_each_plane(threads, N, planes, N * C * pixels, [&]<int kLanes>(std::int64_t n, std::int64_t c) {
    walk_plane<kLanes>(pixels, planes.pixel(), body.at(c, planes.offset(n, c, pixels)));
  });
}

// Computes the two sums (2, C) over a fixed number of parts of the batch, which are then added in order, so that the
// number of threads does not change a bit.
class ChannelSums {
 public:
  ChannelSums(std::int64_t N, std::int64_t C, std::int64_t pixels, const Planes& planes, int threads)
      : N_(N),
        C_(C),
        pixels_(pixels),
        padded_((C + kMaxLanes - 1) / kMaxLanes * kMaxLanes),
        parts_(std::min(N, kSumParts)),
        planes_(planes),
        threads_(threads) {}

  std::size_t scratch_bytes() const { return static_cast<std::size_t>(parts_ * 2 * padded_) * sizeof(double); }

  // to (2, C) = sums over all pixels; the term's operator adds to (.., first, second).
  template <class Term>
  void run(double* to, double* partial, const Term& term) const {
    std::fill(partial, partial + parts_ * 2 * padded_, 0.0);
    const std::int64_t groups = planes_.groups();
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && N_ * pixels_ * C_ >= kParallelElems)
    for (std::int64_t i = 0; i < parts_ * groups; ++i) {
      const std::int64_t part = i / groups;
      planes_.visit(i % groups, [&]<int kLanes>(std::int64_t c) {
        double* first = partial + part * 2 * padded_ + c;
        for (std::int64_t n = part * N_ / parts_; n < (part + 1) * N_ / parts_; ++n)
          add_plane<kLanes>(pixels_, planes_.pixel(), term.at(c, planes_.offset(n, c, pixels_)), first,
                            first + padded_);
      });
    }
    for (int row = 0; row < 2; ++row) {
      for (std::int64_t c = 0; c < C_; ++c) {
        double sum = 0;
        for (std::int64_t part = 0; part < parts_; ++part) sum += partial[(part * 2 + row) * padded_ + c];
        to[row * C_ + c] = sum;
      }
    }
  }

 private:
  std::int64_t N_, C_, pixels_, padded_, parts_;
  Planes planes_;
  int threads_;
};

}  // namespace echelon::inline device::onednn
