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
    ECHELON_CUDA(cudaMalloc(&on_device_, kBytes));
    ECHELON_CUDA(cudaHostAlloc(&on_host_, kBytes, cudaHostAllocDefault));
  }
  CudaVectorOps(const CudaVectorOps&) = delete;
  CudaVectorOps& operator=(const CudaVectorOps&) = delete;
  ~CudaVectorOps() override {
    cudaSetDevice(context_.index());
    if (on_device_) cudaFree(on_device_);
    if (on_host_) cudaFreeHost(on_host_);
  }

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
    enqueue(dtype, [&]<class T>(T) {
      partial_sum_squares(static_cast<const T*>(src), n, static_cast<double*>(on_device_), context_.stream());
    });
    double sum = 0;
    for (const double partial : partials<double>()) sum += partial;
    return sum;
  }
  double max_abs(DType dtype, const void* src, std::size_t n) override {
    enqueue(dtype, [&]<class T>(T) {
      partial_max_abs(static_cast<const T*>(src), n, static_cast<std::uint64_t*>(on_device_), context_.stream());
    });
    const auto all = partials<std::uint64_t>();
    return std::bit_cast<double>(*std::max_element(all.begin(), all.end()));
  }
  std::size_t count_not_finite(DType dtype, const void* src, std::size_t n) override {
    enqueue(dtype, [&]<class T>(T) {
      partial_not_finite(static_cast<const T*>(src), n, static_cast<std::uint64_t*>(on_device_), context_.stream());
    });
    std::size_t count = 0;
    for (const std::uint64_t partial : partials<std::uint64_t>()) count += partial;
    return count;
  }

 private:
  static constexpr std::size_t kBytes = kReduceBlocks * 8;

  template <class Launch>
  void enqueue(DType dtype, Launch&& launch) {
    context_.use();
    with_float(dtype, launch);
    check_launch("a vector operation");
  }

  // The blocks' results, once the device has written them.
  template <class V>
  std::span<const V> partials() {
    ECHELON_CUDA(cudaMemcpyAsync(on_host_, on_device_, kBytes, cudaMemcpyDeviceToHost, context_.stream()));
    ECHELON_CUDA(cudaStreamSynchronize(context_.stream()));
    return {static_cast<const V*>(on_host_), static_cast<std::size_t>(kReduceBlocks)};
  }

  const Context& context_;
  void* on_device_ = nullptr;
  void* on_host_ = nullptr;
};

}  // namespace

std::unique_ptr<VectorOps> make_vector_ops(const Context& context) { return std::make_unique<CudaVectorOps>(context); }

}  // namespace echelon::cuda
