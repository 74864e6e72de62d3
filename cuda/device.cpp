#include "cuda/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <variant>

#include "base/check.hpp"
#include "base/error.hpp"
#include "cuda/check.hpp"
#include "cuda/context.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

// Bytes that live on the device; shared with the Memory objects, which may outlive it and die on any thread.
struct Usage {
  std::atomic<std::size_t> now = 0;
  std::atomic<std::size_t> peak = 0;
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(const Context& context) : index_(context.index()) {
    ECHELON_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    ECHELON_CUDA(cudaEventRecord(event_, context.stream()));
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override {
    cudaSetDevice(index_);
    if (event_) cudaEventDestroy(event_);
  }
  bool ready() const override {
    ECHELON_CUDA(cudaSetDevice(index_));
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    ECHELON_CUDA(status);
    return true;
  }
  void wait() const override {
    ECHELON_CUDA(cudaSetDevice(index_));
    ECHELON_CUDA(cudaEventSynchronize(event_));
  }

 private:
  int index_;
  cudaEvent_t event_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int index, std::int64_t limit_bytes)
      : context_(index),
        limit_bytes_(limit_bytes > 0 ? static_cast<std::size_t>(limit_bytes) : 0),
        vector_ops_(make_vector_ops(context_)) {}

  std::string_view name() const override { return "cuda"; }
  std::string describe() const override;
  bool on_host() const override { return false; }
  bool supports(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64; }

  Memory allocate(std::size_t bytes, std::string_view tag) override;
  std::size_t allocated_bytes() const override { return usage_->now; }
  std::size_t peak_bytes() const override { return usage_->peak; }

  void to_device(void* dst, const void* src, std::size_t bytes) override {
    to_device_async(dst, src, bytes);
    synchronize();
  }
  void to_host(void* dst, const void* src, std::size_t bytes) override {
    to_host_async(dst, src, bytes);
    synchronize();
  }
  void zero(void* dst, std::size_t bytes) override {
    if (bytes == 0) return;
    context_.use();
    ECHELON_CUDA(cudaMemsetAsync(dst, 0, bytes, context_.stream()));
  }
  void to_device_async(void* dst, const void* src, std::size_t bytes) override {
    if (bytes == 0) return;
    context_.use();
    ECHELON_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, context_.stream()));
  }
  void to_host_async(void* dst, const void* src, std::size_t bytes) override {
    if (bytes == 0) return;
    context_.use();
    ECHELON_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, context_.stream()));
  }
  Memory allocate_host(std::size_t bytes) override;
  std::unique_ptr<Event> record() override {
    context_.use();
    return std::make_unique<CudaEvent>(context_);
  }
  void synchronize() override {
    context_.use();
    ECHELON_CUDA(cudaStreamSynchronize(context_.stream()));
  }

  // Every body works on plain tensors.
  LayoutWish layouts(const OpSpec& spec) const override {
    return spec.kind == OpKind::reorder ? LayoutWish{spec.layouts} : LayoutWish{};
  }
  std::unique_ptr<Op> make(const OpSpec& spec) override;
  std::unique_ptr<Update> make_update(std::string_view rule, DType dtype) override {
    check_dtype(dtype);
    return cuda::make_update(context_, rule, dtype);
  }
  VectorOps& vector_ops() override { return *vector_ops_; }

 private:
  void check_dtype(DType dtype) const {
    if (!supports(dtype))
      throw ConfigError(fmt::format("device cuda computes in f32 and f64, not in {}", name_of(dtype)));
  }

  Context context_;
  std::size_t limit_bytes_;
  std::shared_ptr<Usage> usage_ = std::make_shared<Usage>();
  std::unique_ptr<VectorOps> vector_ops_;
};

std::string gib(std::size_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30)); }

std::string CudaDevice::describe() const {
  cudaDeviceProp properties{};
  ECHELON_CUDA(cudaGetDeviceProperties(&properties, context_.index()));
  return fmt::format("{}, {:.0f} GiB, sm_{}{}", properties.name,
                     static_cast<double>(properties.totalGlobalMem) / (1 << 30), properties.major, properties.minor);
}

Memory CudaDevice::allocate(std::size_t bytes, std::string_view tag) {
  context_.use();
  const std::size_t after = usage_->now + bytes;
  if (limit_bytes_ > 0 && after > limit_bytes_)
    throw MemoryError(fmt::format("device cuda: {} for {} would make {}, above the limit of {}", gib(bytes), tag,
                                  gib(after), gib(limit_bytes_)));
  void* data = nullptr;
  const std::size_t taken = std::max<std::size_t>(bytes, 1);  // so that the address is one even where bytes is 0
  if (const cudaError_t status = cudaMalloc(&data, taken); status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    throw MemoryError(fmt::format("device cuda: {} for {} do not fit: {} of {} are free, {} are ours", gib(bytes), tag,
                                  gib(free_bytes), gib(total_bytes), gib(usage_->now)));
  } else {
    ECHELON_CUDA(status);
  }
  usage_->now += bytes;
  usage_->peak = std::max(usage_->peak.load(), usage_->now.load());
  Memory memory(data, bytes, [usage = usage_, bytes, index = context_.index()](void* address) {
    cudaSetDevice(index);
    cudaFree(address);  // waits until the device has done with it
    usage->now -= bytes;
  });
  ECHELON_CUDA(cudaMemsetAsync(data, 0, taken, context_.stream()));
  return memory;
}

Memory CudaDevice::allocate_host(std::size_t bytes) {
  context_.use();
  void* data = nullptr;
  const std::size_t taken = std::max<std::size_t>(bytes, 1);
  ECHELON_CUDA(cudaHostAlloc(&data, taken, cudaHostAllocDefault));
  std::memset(data, 0, taken);
  return Memory(data, bytes, [index = context_.index()](void* address) {
    cudaSetDevice(index);
    cudaFreeHost(address);
  });
}

std::unique_ptr<Op> CudaDevice::make(const OpSpec& spec) {
  context_.use();
  check_dtype(spec.dtype);
  const std::vector<ArgInfo> args = signature(spec);
  for (std::size_t a = 0; a < args.size(); ++a)
    if (spec.kind != OpKind::reorder && spec.layouts[a] != Layout::plain)
      throw ConfigError(fmt::format("device cuda has no {} with {} in layout {}", name_of(spec.kind), args[a].name,
                                    name_of(spec.layouts[a])));
  if (std::holds_alternative<ConvDims>(spec.dims)) return make_conv(context_, spec);
  if (std::holds_alternative<DenseDims>(spec.dims)) return make_dense(context_, spec);
  if (std::holds_alternative<PoolDims>(spec.dims)) return make_pool(context_, spec);
  if (std::holds_alternative<NormDims>(spec.dims)) return make_norm(context_, spec);
  if (std::holds_alternative<SoftmaxDims>(spec.dims)) return make_softmax(context_, spec);
  if (std::holds_alternative<DropoutDims>(spec.dims)) return make_dropout(context_, spec);
  if (std::holds_alternative<ConcatDims>(spec.dims)) return make_concat(context_, spec);
  if (std::holds_alternative<SliceDims>(spec.dims)) return make_slice(context_, spec);
  if (std::holds_alternative<LrnDims>(spec.dims)) return make_lrn(context_, spec);
  if (std::holds_alternative<LayerNormDims>(spec.dims)) return make_layer_norm(context_, spec);
  if (std::holds_alternative<ValueLossDims>(spec.dims)) return make_value_loss(context_, spec);
  if (std::holds_alternative<AttentionDims>(spec.dims)) return make_attention(context_, spec);
  if (std::holds_alternative<SequencePoolDims>(spec.dims)) return make_sequence_pool(context_, spec);
  if (std::holds_alternative<BroadcastDims>(spec.dims)) return make_broadcast(context_, spec);
  if (std::holds_alternative<RnnDims>(spec.dims)) return make_rnn(context_, spec);
  if (std::holds_alternative<EmbeddingDims>(spec.dims)) return make_embedding(context_, spec);
  return make_elementwise(context_, spec);
}

}  // namespace

std::unique_ptr<Device> make_device(const DeviceOptions& options) {
  int visible = 0;
  ECHELON_CUDA(cudaGetDeviceCount(&visible));
  ECHELON_CHECK_GE(options.index, 0);
  if (visible == 0) throw EnvironmentError("no usable CUDA device");
  return std::make_unique<CudaDevice>(options.index % visible, options.memory_limit_bytes);
}

}  // namespace echelon::cuda
