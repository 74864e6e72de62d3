// SPDX-License-Identifier: Apache-2.0
// Kernels that no op of the contract reaches: those for cuDNN's recurrent layers, blocked layouts, reorders that add.
#include <cuda_runtime.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "cuda/kernels/element.cuh"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/kernels/layer_norm.hpp"
#include "cuda/kernels/norm.hpp"
#include "cuda/kernels/recurrent.hpp"
#include "cuda/kernels/rnn_weights.hpp"
#include "tests/cuda_on_cpu/blocks.hpp"
#include "tests/cuda_on_cpu/device.hpp"
#include "tests/support/random.hpp"

using namespace echelon;
using namespace echelon::cuda;
using namespace echelon::test;

namespace {

template <class T>
std::vector<T> draw(std::int64_t n, const std::string& name) {
  std::vector<T> values;
  for (const double value : random_values(static_cast<std::size_t>(n), name))
    values.push_back(Narrow<T>::from(static_cast<Wide<T>>(value)));
  return values;
}

// `is` holds T(before + added) of each place.
template <class T>
bool same(const std::vector<T>& is, const std::vector<Wide<T>>& wanted) {
  bool all = is.size() == wanted.size();
  for (std::size_t i = 0; all && i < is.size(); ++i) all = wide(is[i]) == wide(Narrow<T>::from(wanted[i]));
  return all;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
std::vector<Wide<T>> widened(const std::vector<T>& values) {
  std::vector<Wide<T>> wides;
  for (const T value : values) wides.push_back(wide(value));
  return wides;
}

template <class Body>
void each_type(Body&& body) {
  on_cpu::vary_order(test_seed());
  body(float{});
  body(double{});
  body(Half{});
  body(BHalf{});
}

}  // namespace

TEST_CASE("weights of recurrent layers go to the library's places and back", "[cuda_on_cpu]") {
  each_type([]<class T>(T) {
    using P = Wide<T>;
    for (const std::int64_t G : {1, 3, 4})
      for (const std::int64_t H : {1, 5, 33})
        for (const std::int64_t F : {1, 7, 31}) {
          CAPTURE(G, H, F, sizeof(T));
          // The library's space: gates from the last to the first, a gap of 3 between them.
          RnnParts parts{.G = G, .H = H, .F = F, .matrix = {}, .bias = {}};
          std::int64_t bytes = 0;
          for (std::int64_t g = 2 * G - 1; g >= 0; --g) {
            parts.matrix[g] = bytes;
            bytes += H * (g < G ? F : H) + 3;
            parts.bias[g] = bytes;
            bytes += H + 3;
          }
          const std::vector<P> wx = draw<P>(G * H * F, "wx"), wh = draw<P>(G * H * H, "wh"), bx = draw<P>(G * H, "bx"),
                               bh = draw<P>(G * H, "bh");
          std::vector<T> space = draw<T>(bytes, "space");
          std::vector<P> wanted = widened(space);
          for (std::int64_t g = 0; g < G; ++g) {
            for (std::int64_t i = 0; i < H * F; ++i) wanted[parts.matrix[g] + i] = wx[g * H * F + i];
            for (std::int64_t i = 0; i < H * H; ++i) wanted[parts.matrix[G + g] + i] = wh[g * H * H + i];
            for (std::int64_t i = 0; i < H; ++i) wanted[parts.bias[g] + i] = bx[g * H + i];
            for (std::int64_t i = 0; i < H; ++i) wanted[parts.bias[G + g] + i] = bh[g * H + i];
          }
          pack_rnn_weights<T>(parts, {wx.data(), wh.data(), bx.data(), bh.data()}, space.data(), nullptr);
          CHECK(same(space, wanted));
          for (const unsigned adds : {0u, 5u, 10u, 15u}) {
            std::vector<P> dwx = wx, dwh = wh, dbx = bx, dbh = bh;
            unpack_rnn_gradients<T>(parts, space.data(), {dwx.data(), dwh.data(), dbx.data(), dbh.data()},
                                    {(adds & 1) != 0, (adds & 2) != 0, (adds & 4) != 0, (adds & 8) != 0}, nullptr);
            const auto check = [](const std::vector<P>& is, const std::vector<P>& before, bool add) {
              std::vector<P> sums;
              for (const P value : before) {
                const P rounded = wide(Narrow<T>::from(value));
                sums.push_back(add ? value + rounded : rounded);
              }
              CHECK(same(is, sums));
            };
            check(dwx, wx, adds & 1);
            check(dwh, wh, adds & 2);
            check(dbx, bx, adds & 4);
            check(dbh, bh, adds & 8);
          }
        }
  });
}

TEST_CASE("sequences are placed forwards and backwards, with and without lengths", "[cuda_on_cpu]") {
  each_type([]<class T>(T) {
    const std::int64_t N = 5, F = 33;
    for (const std::int64_t steps : {1, 7, 31})
      for (const bool reverse : {false, true})
        for (const bool add : {false, true})
          for (const bool ragged : {false, true}) {
            CAPTURE(steps, reverse, add, ragged, sizeof(T));
            std::vector<std::int32_t> lengths;
            for (std::int64_t n = 0; n < N; ++n) lengths.push_back(static_cast<std::int32_t>(n * steps / (N - 1)));
            const std::vector<T> from = draw<T>(N * steps * F, "from");
            std::vector<T> to = draw<T>(N * steps * F, "to");
            std::vector<Wide<T>> wanted;
            for (std::int64_t n = 0; n < N; ++n)
              for (std::int64_t t = 0; t < steps; ++t)
                for (std::int64_t f = 0; f < F; ++f) {
                  const std::int64_t length = ragged ? lengths[n] : steps, source = reverse ? length - 1 - t : t;
                  const Wide<T> moved = t < length ? wide(from[(n * steps + source) * F + f]) : Wide<T>(0);
                  wanted.push_back(add ? wide(to[wanted.size()]) + moved : moved);
                }
            place_sequences<T>({N, steps, F, ragged ? lengths.data() : nullptr}, from.data(), to.data(), reverse, add,
                               nullptr);
            CHECK(same(to, wanted));
          }
  });
}

TEST_CASE("reorders go to every layout and back, also adding", "[cuda_on_cpu]") {
  each_type([]<class T>(T) {
    for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 17, 3, 5}, Shape{3, 8, 1, 7}, Shape{1, 33, 31, 1}})
      for (const Layout layout : {Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16})
        for (const bool add : {false, true}) {
          CAPTURE(shape, name_of(layout), add, sizeof(T));
          const std::vector<T> plain = draw<T>(shape.elems(), "plain");
          std::vector<T> there = draw<T>(stored_elems(shape, layout), "there"), back = draw<T>(shape.elems(), "back");
          const std::vector<T> before = there, back_before = back;
          reorder<T, T>(plain.data(), Layout::plain, there.data(), layout, shape, false, nullptr);
          reorder<T, T>(there.data(), layout, back.data(), Layout::plain, shape, add, nullptr);
          std::vector<Wide<T>> wanted = widened(plain);
          for (std::size_t i = 0; i < wanted.size(); ++i)
            if (add) wanted[i] += wide(back_before[i]);
          CHECK(same(back, wanted));
          std::vector<T> sums = before;
          reorder<T, T>(plain.data(), Layout::plain, sums.data(), layout, shape, true, nullptr);
          std::vector<Wide<T>> all = widened(there);
          for (std::size_t i = 0; i < all.size(); ++i) all[i] += wide(before[i]);
          CHECK(same(sums, all));
        }
  });
}

// The results of sums depend only on the extents, not on which thread runs first, nor on the addresses of the values.
TEST_CASE("sums over channels have the same bits in every order and at every address", "[cuda_on_cpu]") {
  each_type([]<class T>(T) {
    const auto check = [](const ChannelExtents& e) {
      CAPTURE(e.N, e.C, e.elems, sizeof(T));
      const std::int64_t n = e.N * e.C * e.elems;
      std::vector<T> x = draw<T>(n, "x"), dy = draw<T>(n, "dy");
      const auto C = static_cast<std::size_t>(e.C);
      const std::vector<double> stats(2 * C, 0.5);
      std::vector<std::vector<double>> results;
      for (const bool shifted : {false, true}) {
        if (shifted) x.insert(x.begin(), T(0)), dy.insert(dy.begin(), T(0));
        for (const on_cpu::Order order : {on_cpu::Order::rising, on_cpu::Order::falling, on_cpu::Order::drawn}) {
          on_cpu::set_order(order, test_seed());
          std::vector<std::byte> scratch(channel_scratch_bytes(e, 2));
          std::vector<double> moments(2 * C), pulls(2 * C);
          const NormExtents norm{e, false};
          norm_moments(norm, x.data() + shifted, moments.data(), scratch.data(), nullptr);
          norm_backward_sums(norm,
                             NormGradient<T>{x.data() + shifted, dy.data() + shifted, stats.data(), nullptr, nullptr},
                             pulls.data(), scratch.data(), nullptr);
          moments.insert(moments.end(), pulls.begin(), pulls.end());
          results.push_back(moments);
        }
      }
      for (const auto& result : results) CHECK(result == results.front());
    };
    for (const std::int64_t C : {1, 8, 40, 257, 512}) check({131, C, 1});
    for (const std::int64_t elems : {16, 49, 257, 1024}) check({5, 3, elems});
    check({2000, 24, 1});
  });
}

TEST_CASE("rows of layer norm are a warp's or a block's, with the same bits in every order and at every address",
          "[cuda_on_cpu]") {
  each_type([]<class T>(T) {
    constexpr std::int64_t kRows = 11, kPack = 16 / sizeof(T);
    for (const std::int64_t F : {std::int64_t{1}, std::int64_t{31}, std::int64_t{257}, 256 * kPack, 257 * kPack}) {
      CAPTURE(F, sizeof(T));
      const std::vector<Wide<T>> gamma = draw<Wide<T>>(F, "gamma"), beta = draw<Wide<T>>(F, "beta");
      std::vector<T> x = draw<T>(kRows * F, "x"), dy = draw<T>(kRows * F, "dy");
      std::vector<std::vector<Wide<T>>> results;
      for (const bool shifted : {false, true}) {
        if (shifted) x.insert(x.begin(), T(0)), dy.insert(dy.begin(), T(0));
        for (const on_cpu::Order order : {on_cpu::Order::rising, on_cpu::Order::falling, on_cpu::Order::drawn}) {
          on_cpu::set_order(order, test_seed());
          std::vector<T> y(x.size() - shifted), dx = y;
          std::vector<double> stats(2 * kRows);
          layer_norm_forward<T>({kRows, F}, x.data() + shifted, gamma.data(), beta.data(), 0.01, y.data(), stats.data(),
                                nullptr);
          CHECK(blockDim.x == (F == 257 || F == 257 * kPack ? 256 : 32));  // block of the last launch
          CHECK(blockDim.x * blockDim.y == 256);
          layer_norm_backward<T>({kRows, F}, x.data() + shifted, dy.data() + shifted, stats.data(), gamma.data(),
                                 dx.data(), false, nullptr);
          y.insert(y.end(), dx.begin(), dx.end());
          results.push_back(widened(y));
        }
      }
      for (const auto& result : results) CHECK(result == results.front());
    }
  });
}

// Whole packs, their ends, and the rest if a range does not begin at a multiple of 16 bytes.
TEST_CASE("sums of two tensors and relu at every size and address", "[cuda_on_cpu]") {
  each_type([]<class T>(T) {
    for (const std::int64_t n : {1, 7, 8, 9, 31, 33, 257, 4096, 70001})
      for (const std::size_t shift : {0, 1})
        for (const bool add : {false, true}) {
          CAPTURE(n, shift, add, sizeof(T));
          const std::vector<T> a = draw<T>(n + static_cast<std::int64_t>(shift), "a"), b = draw<T>(n, "b");
          std::vector<T> y(static_cast<std::size_t>(n)), dx = b, clipped = y, fused = y;
          std::vector<Wide<T>> sums, cut, pulls;
          for (std::size_t i = 0; i < y.size(); ++i) {
            const Wide<T> at = wide(a[i + shift]), pull = at > 0 ? wide(b[i]) : Wide<T>(0);
            sums.push_back(at + wide(b[i]));
            cut.push_back(at > 0 ? at : Wide<T>(0));
            pulls.push_back(add ? wide(b[i]) + pull : pull);
          }
          add_tensors<T>(a.data() + shift, b.data(), y.data(), n, false, nullptr);
          CHECK(same(y, sums));
          add_tensors<T>(a.data() + shift, b.data(), fused.data(), n, true, nullptr);
          activation_forward<T>({}, y.data(), clipped.data(), n, nullptr);
          CHECK(same_bits(fused, clipped));
          add_masked<T>(a.data() + shift, a.data() + shift, b.data(), fused.data(), n, nullptr);
          activation_backward<T>({}, a.data() + shift, y.data(), clipped.data(), n, false, nullptr);
          CHECK(same_bits(fused, clipped));
          activation_forward<T>({}, a.data() + shift, clipped.data(), n, nullptr);
          CHECK(same(clipped, cut));
          activation_backward<T>({}, a.data() + shift, b.data(), dx.data(), n, add, nullptr);
          CHECK(same(dx, pulls));
        }
  });
}

TEST_CASE("vector operations on ranges of exactly their size", "[cuda_on_cpu]") {
  on_cpu::vary_order(test_seed());
  const auto device = on_cpu::make_device();
  VectorOps& ops = device->vector_ops();
  const auto check = [&]<class T>(T) {
    constexpr DType kType = sizeof(T) == 8 ? DType::f64 : DType::f32;
    for (const std::int64_t n : {1, 31, 257, 1031, 150001}) {
      CAPTURE(n, sizeof(T));
      const auto size = static_cast<std::size_t>(n);
      const std::vector<T> x = draw<T>(n, "x"), before = draw<T>(n, "y");
      std::vector<T> y = before, wanted = before;
      ops.add(kType, y.data(), x.data(), size);
      ops.axpy(kType, y.data(), 0.5, x.data(), size);
      ops.scale(kType, y.data(), 0.75, size);
      double squares = 0, most = 0;
      for (std::size_t i = 0; i < size; ++i) {
        wanted[i] = T(0.75) * (wanted[i] + x[i] + T(0.5) * x[i]);
        squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
        most = std::max(most, std::fabs(static_cast<double>(x[i])));
      }
      CHECK(y == wanted);
      CHECK(ops.sum_squares(kType, x.data(), size) == Approx(squares).epsilon(1e-12));
      CHECK(ops.max_abs(kType, x.data(), size) == most);
      CHECK(ops.count_not_finite(kType, x.data(), size) == 0);
      y[size / 2] = std::numeric_limits<T>::infinity();
      y.back() = std::numeric_limits<T>::quiet_NaN();
      CHECK(ops.count_not_finite(kType, y.data(), size) == (n > 1 ? 2 : 1));
      CHECK(std::isnan(ops.max_abs(kType, y.data(), size)));
      ops.fill(kType, y.data(), 3, size);
      ops.copy(kType, wanted.data(), y.data(), size);
      CHECK(wanted == std::vector<T>(size, T(3)));
    }
  };
  check(float{});
  check(double{});
}
