// SPDX-License-Identifier: Apache-2.0
// One warp per row if rows are short, else one block (each.cuh). Sums are in double, over packs of elements as in
// channel_sums.cuh; all else is in Wide<T>.
#include "cuda/kernels/layer_norm.hpp"

#include "cuda/kernels/channel_sums.cuh"
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"

namespace echelon::cuda {
namespace {

// The sum of value(x) over a row of F elements, of which a thread takes K at a time.
template <int kLanes, int K, class T, class Value>
__device__ double row_sum(std::int64_t F, const T* row, bool whole, Value value) {
  return row_reduce<kLanes>(
      F / K, 0.0,
      [&](std::int64_t p) {
        Wide<T> x[K];
        load<K>(row + p * K, whole, x);
        PackSum<T> sum = 0;
        for (int k = 0; k < K; ++k) sum += value(x[k]);
        return static_cast<double>(sum);
      },
      Plus{});
}

template <int kLanes, int K, class T>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(RowExtents e, Inputs<T, 1> x, bool whole, const Wide<T>* gamma, const Wide<T>* beta, double epsilon,
                   T* y, double* stats) {
  using W = Wide<T>;
  const double F = static_cast<double>(e.F);
  for (std::int64_t r = first_row(); r < e.rows; r += row_step()) {
    const T* row = x.at[0] + r * e.F;
    const double sum = row_sum<kLanes, K>(e.F, row, whole, [](W value) { return PackSum<T>(value); });
    const W mean = static_cast<W>(sum / F);
    const double squares = row_sum<kLanes, K>(e.F, row, whole, [=](W value) {
      const PackSum<T> centred = value - mean;
      return centred * centred;
    });
    const double istd = 1.0 / ::sqrt(squares / F + epsilon);
    if (threadIdx.x == 0) {
      stats[r] = sum / F;
      stats[e.rows + r] = istd;
    }
    for (std::int64_t f = threadIdx.x * K; f < e.F; f += kLanes * K)
      map_pack<K>(Inputs<T, 1>{{row}}, y + r * e.F, f, whole, false, [&](int k, const W* values) {
        return gamma[f + k] * ((values[0] - mean) * static_cast<W>(istd)) + beta[f + k];
      });
  }
}

struct Means {
  double pull, product;
};
struct PlusMeans {
  __device__ Means operator()(const Means& a, const Means& b) const { return {a.pull + b.pull, a.product + b.product}; }
};

template <int kLanes, int K, class T>
__global__ void __launch_bounds__(kThreads)
    backward_kernel(RowExtents e, Inputs<T, 2> x, bool whole, const double* stats, const Wide<T>* gamma, T* dx,
                    bool add) {
  using W = Wide<T>;
  const double F = static_cast<double>(e.F);
  for (std::int64_t r = first_row(); r < e.rows; r += row_step()) {
    const W mean = static_cast<W>(stats[r]), istd = static_cast<W>(stats[e.rows + r]);
    const Inputs<T, 2> row{{x.at[0] + r * e.F, x.at[1] + r * e.F}};
    Means mine{0, 0};
    for (std::int64_t f = threadIdx.x * K; f < e.F; f += kLanes * K) {
      W in[2][K];
      for (int j = 0; j < 2; ++j) load<K>(row.at[j] + f, whole, in[j]);
      PackSum<T> pull = 0, product = 0;
      for (int k = 0; k < K; ++k) {
        const PackSum<T> g = gamma[f + k] * in[1][k];
        pull += g;
        product += g * ((in[0][k] - mean) * istd);
      }
      mine = PlusMeans{}(mine, {static_cast<double>(pull), static_cast<double>(product)});
    }
    const Means sums = lanes_reduce<kLanes>(mine, PlusMeans{});
    const W pull = static_cast<W>(sums.pull / F), product = static_cast<W>(sums.product / F);
    for (std::int64_t f = threadIdx.x * K; f < e.F; f += kLanes * K)
      map_pack<K>(row, dx + r * e.F, f, whole, add, [&](int k, const W* values) {
        return istd * (gamma[f + k] * values[1] - pull - (values[0] - mean) * istd * product);
      });
  }
}

// Calls body.operator()<kLanes, K>(grid, block), where K is the number of elements that a thread takes at once.
template <class T, class Body>
void by_rows(const RowExtents& e, Body body) {
  const auto of_packs = [&]<int K>() {
    by_lanes(e.F / K, [&]<int kLanes>(dim3 block) {
      body.template operator()<kLanes, K>(grid_blocks(e.rows, block.y, 1 << 16), block);
    });
  };
  e.F % kPack<T> == 0 ? of_packs.template operator()<kPack<T>>() : of_packs.template operator()<1>();
}

// Computes the terms dy and dy*xhat from x and dy.
template <class T>
struct GradientTerms {
  const double* stats;
  std::int64_t rows;
  struct Own {
    const double* stats;
    std::int64_t rows;
    __device__ void operator()(std::int64_t r, const Wide<T>* values, PackSum<T>* sums) const {
      const Wide<T> mean = static_cast<Wide<T>>(stats[r]), istd = static_cast<Wide<T>>(stats[rows + r]);
      sums[0] += values[1];
      sums[1] += static_cast<PackSum<T>>(values[1]) * ((values[0] - mean) * istd);
    }
  };
  __device__ Own of(std::int64_t) const { return {stats, rows}; }
};

}  // namespace

template <class T>
void layer_norm_forward(const RowExtents& e, const T* x, const Wide<T>* gamma, const Wide<T>* beta, double epsilon,
                        T* y, double* stats, cudaStream_t stream) {
  const Inputs<T, 1> in = inputs(x);
  by_rows<T>(e, [&]<int kLanes, int K>(dim3 grid, dim3 block) {
    launch(forward_kernel<kLanes, K, T>, grid, block, stream, e, in, whole(in) && whole(y), gamma, beta, epsilon, y,
           stats);
  });
}

template <class T>
void layer_norm_backward(const RowExtents& e, const T* x, const T* dy, const double* stats, const Wide<T>* gamma, T* dx,
                         bool add, cudaStream_t stream) {
  const Inputs<T, 2> in = inputs(x, dy);
  by_rows<T>(e, [&]<int kLanes, int K>(dim3 grid, dim3 block) {
    launch(backward_kernel<kLanes, K, T>, grid, block, stream, e, in, whole(in) && whole(dx), stats, gamma, dx, add);
  });
}

template <class T>
void layer_norm_parameter_gradients(const RowExtents& e, const T* x, const T* dy, const double* stats, Wide<T>* dgamma,
                                    bool add_gamma, Wide<T>* dbeta, bool add_beta, void* scratch, cudaStream_t stream) {
  channel_sums<2>(ChannelExtents{e.rows, e.F, 1}, inputs(x, dy), scratch, stream, GradientTerms<T>{stats, e.rows},
                  [=] __device__(std::int64_t f, const double* sums) {
                    put(dgamma + f, sums[1], add_gamma);
                    put(dbeta + f, sums[0], add_beta);
                  });
}

#define ECHELON_INSTANTIATE(T)                                                                                         \
  template void layer_norm_forward<T>(const RowExtents&, const T*, const Wide<T>*, const Wide<T>*, double, T*,         \
                                      double*, cudaStream_t);                                                          \
  template void layer_norm_backward<T>(const RowExtents&, const T*, const T*, const double*, const Wide<T>*, T*, bool, \
                                       cudaStream_t);                                                                  \
  template void layer_norm_parameter_gradients<T>(const RowExtents&, const T*, const T*, const double*, Wide<T>*,      \
                                                  bool, Wide<T>*, bool, void*, cudaStream_t);
ECHELON_CUDA_TYPES(ECHELON_INSTANTIATE)
#undef ECHELON_INSTANTIATE

}  // namespace echelon::cuda
