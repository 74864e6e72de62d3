// SPDX-License-Identifier: Apache-2.0
// Vector operations on the device's stream; those that return a value wait for it.
#include "cuda/kernels/vector.hpp"

#include <algorithm>
#include <bit>
#include <memory>

#include "cuda/check.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

class CudaVectorOps final : public VectorOps {
 public:
  explicit CudaVectorOps(const Context& context) : context_(context) {
    context_.use();
    on_device_ = make_memory(kBytes);
    on_host_ = make_host_memory(kBytes);
  }
  CudaVectorOps(const CudaVectorOps&) = delete;
  CudaVectorOps& operator=(const CudaVectorOps&) = delete;
  ~CudaVectorOps() override { cudaSetDevice(context_.index()); }

  void fill(DType dtype, void* dst, double value, std::size_t n) override {
    enqueue(dtype, [&]<class T>(T) { vector_fill(static_cast<T*>(dst), static_cast<T>(value), n, context_.stream()); });
  }
  void copy(DType dtype, void* dst, const void* src, std::size_t n) override {
    context_.use();
    if (n == 0 || dst == src) return;
    ECHELON_CUDA(cudaMemcpyAsync(dst, src, n * size_of(dtype), cudaMemcpyDeviceToDevice, context_.stream()));
  }
  void add(DType dtype, void* dst, const void* src, std::size_t n) override {
    enqueue(dtype,
            [&]<class T>(T) { vector_add(static_cast<T*>(dst), static_cast<const T*>(src), n, context_.stream()); });
  }
  void scale(DType dtype, void* dst, double factor, std::size_t n) override {
    enqueue(dtype,
            [&]<class T>(T) { vector_scale(static_cast<T*>(dst), static_cast<T>(factor), n, context_.stream()); });
  }
  void axpy(DType dtype, void* dst, double factor, const void* src, std::size_t n) override {
    enqueue(dtype, [&]<class T>(T) {
      vector_axpy(static_cast<T*>(dst), static_cast<T>(factor), static_cast<const T*>(src), n, context_.stream());
    });
  }
  void compensate(DType dtype, const DelayCompensation& how, const CompensatedUpdate& update, std::size_t n) override {
    enqueue(dtype, [&]<class T>(T) { vector_compensate<T>(how, update, n, context_.stream()); });
  }
  double sum_squares(DType dtype, const void* src, std::size_t n) override {
    double sum = 0;
    const VectorRange range{src, n};
    sums_of_squares(dtype, {&range, 1}, {&sum, 1});
    return sum;
  }
  void sums_of_squares(DType dtype, std::span<const VectorRange> ranges, std::span<double> sums) override {
    for (std::size_t begin = 0; begin < ranges.size(); begin += kRanges) {
      const std::size_t count = std::min(kRanges, ranges.size() - begin);
      for (std::size_t i = 0; i < count; ++i)
        enqueue(dtype, [&]<class T>(T) {
          const VectorRange& range = ranges[begin + i];
          partial_sum_squares(static_cast<const T*>(range.data), range.n, on_device<double>() + i * kReduceBlocks,
                              context_.stream());
        });
      const std::span<const double> all = partials<double>(count);
      for (std::size_t i = 0; i < count; ++i) {
        double& sum = sums[begin + i] = 0;
        for (const double partial : all.subspan(i * kReduceBlocks, kReduceBlocks)) sum += partial;
      }
    }
  }
  double max_abs(DType dtype, const void* src, std::size_t n) override {
    enqueue(dtype, [&]<class T>(T) {
      partial_max_abs(static_cast<const T*>(src), n, on_device<std::uint64_t>(), context_.stream());
    });
    const auto all = partials<std::uint64_t>(1);
    return std::bit_cast<double>(*std::max_element(all.begin(), all.end()));
  }
  std::size_t count_not_finite(DType dtype, const void* src, std::size_t n) override {
    enqueue(dtype, [&]<class T>(T) {
      partial_not_finite(static_cast<const T*>(src), n, on_device<std::uint64_t>(), context_.stream());
    });
    std::size_t count = 0;
    for (const std::uint64_t partial : partials<std::uint64_t>(1)) count += partial;
    return count;
  }

 private:
  static constexpr std::size_t kRanges = 64;  // number of ranges that are waited for together
  static constexpr std::size_t kBytes = kRanges * kReduceBlocks * 8;

  template <class Launch>
  void enqueue(DType dtype, Launch&& launch) {
    context_.use();
    with_float(dtype, launch);
    check_launch("a vector operation");
  }

  template <class V>
  V* on_device() const {
    return reinterpret_cast<V*>(on_device_.get());
  }

  // Returns the block results of `launches` launches, once the device has written them.
  template <class V>
  std::span<const V> partials(std::size_t launches) {
    const std::size_t values = launches * kReduceBlocks;
    ECHELON_CUDA(cudaMemcpyAsync(on_host_.get(), on_device_.get(), values * sizeof(V), cudaMemcpyDeviceToHost,
                                 context_.stream()));
    context_.synchronize();
    return {reinterpret_cast<const V*>(on_host_.get()), values};
  }

  const Context& context_;
  OwnedMemory on_device_;
  OwnedHostMemory on_host_;
};

}  // namespace

std::unique_ptr<VectorOps> make_vector_ops(const Context& context) { return std::make_unique<CudaVectorOps>(context); }

}  // namespace echelon::cuda
