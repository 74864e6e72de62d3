// SPDX-License-Identifier: Apache-2.0
#include "cuda/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <variant>

#include "base/check.hpp"
#include "base/error.hpp"
#include "cuda/check.hpp"
#include "cuda/context.hpp"
#include "cuda/cudnn/algorithms.hpp"
#include "cuda/make.hpp"
#include "cuda/nccl.hpp"
#include "cuda/nvml.hpp"
#include "cuda/queues.hpp"
#include "cuda/recording.hpp"

namespace echelon::cuda {
namespace {

constexpr std::size_t kRnnBf16Version = 91300;  // the first version of cuDNN with recurrent layers of bf16

class CudaDevice final : public Device {
 public:
  CudaDevice(int index, const DeviceOptions& options)
      : context_(index, options), vector_ops_(make_vector_ops(context_)) {}
  explicit CudaDevice(const Context& beside) : context_(beside.beside()), vector_ops_(make_vector_ops(context_)) {}

  std::string_view name() const override { return "cuda"; }
  std::string describe() const override;
  bool on_host() const override { return false; }
  bool has(OpKind kind, DType dtype) const override;
  bool supports(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64 || is_half(dtype); }

  Memory allocate(std::size_t bytes, std::string_view tag) override { return context_.allocate(bytes, tag); }
  std::size_t allocated_bytes() const override { return context_.allocated_bytes(); }
  std::size_t peak_bytes() const override { return context_.peak_bytes(); }
  std::size_t card_bytes() const override;
  unsigned throttled() const override { return cuda::throttled(context_.index()); }

  void zero(void* dst, std::size_t bytes) override {
    if (nothing(bytes)) return;
    ECHELON_CUDA(cudaMemsetAsync(dst, 0, bytes, context_.stream()));
  }
  void to_device_async(void* dst, const void* src, std::size_t bytes) override {
    if (nothing(bytes)) return;
    ECHELON_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, context_.stream()));
  }
  void to_host_async(void* dst, const void* src, std::size_t bytes) override {
    if (nothing(bytes)) return;
    ECHELON_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, context_.stream()));
  }
  Memory allocate_host(std::size_t bytes) override;
  std::string export_memory(const Memory& memory) override;
  Memory import_memory(const std::string& exported) override;
  void copy(void* dst, const void* src, std::size_t bytes) override {
    if (nothing(bytes)) return;
    ECHELON_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, context_.stream()));
  }
  std::unique_ptr<Event> record() override {
    context_.use();
    return record_event(context_);
  }
  void synchronize() override { context_.synchronize(); }
  std::unique_ptr<DeviceTimer> make_timer() override { return cuda::make_timer(context_); }
  std::unique_ptr<CopyQueue> make_copy_queue(std::size_t slots) override {
    return cuda::make_copy_queue(context_, slots);
  }

  LayoutWish layouts(const OpSpec& spec) const override;
  std::unique_ptr<Op> make(const OpSpec& spec) override;
  std::unique_ptr<Update> make_update(std::string_view rule, DType dtype) override {
    if (dtype != DType::f32 && dtype != DType::f64)
      throw ConfigError(fmt::format("device cuda keeps parameters in f32 or f64, not in {}", name_of(dtype)));
    return cuda::make_update(context_, rule, dtype);
  }
  VectorOps& vector_ops() override { return *vector_ops_; }
  std::unique_ptr<Device> beside() override { return std::make_unique<CudaDevice>(context_); }
  std::unique_ptr<DeviceCodec> make_codec(const DeviceCodecSpec& spec) override {
    return cuda::make_codec(context_, spec);
  }
  std::string card() const override;
  std::string allreduce_problem() const override { return nccl_problem(); }
  std::unique_ptr<DeviceAllreduce> make_allreduce(const DeviceGroup& group) override {
    return make_nccl(context_, group);
  }
  bool records() const override { return true; }
  std::unique_ptr<Recording> record_ops(const std::function<void()>& enqueue) override {
    return cuda::record_ops(context_, enqueue);
  }

 private:
  void check(const OpSpec& spec) const;
  // Whether there is nothing to do for this many bytes; if there is, makes the card current in this thread.
  bool nothing(std::size_t bytes) const {
    if (bytes == 0 || context_.only_counts()) return true;
    context_.use();
    return false;
  }

  Context context_;
  mutable std::map<std::string, Layout> conv_layouts_;  // by spec, because the library's ranking takes long
  std::unique_ptr<VectorOps> vector_ops_;
};

std::string CudaDevice::describe() const {
  cudaDeviceProp properties{};
  ECHELON_CUDA(cudaGetDeviceProperties(&properties, context_.index()));
  return fmt::format("{}, {:.0f} GiB, sm_{}{}{}", properties.name,
                     static_cast<double>(properties.totalGlobalMem) / (1 << 30), properties.major, properties.minor,
                     context_.tf32() ? ", TF32" : "");
}

std::size_t CudaDevice::card_bytes() const {
  context_.use();
  std::size_t free_bytes = 0, total_bytes = 0;
  ECHELON_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  return total_bytes;
}

std::string CudaDevice::card() const {
  cudaDeviceProp properties{};
  ECHELON_CUDA(cudaGetDeviceProperties(&properties, context_.index()));
  std::string digits = "GPU-";
  for (const char byte : properties.uuid.bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

Memory CudaDevice::allocate_host(std::size_t bytes) {
  if (context_.only_counts()) return HostMemory(0, true).allocate(bytes, "host staging");
  context_.use();
  const std::size_t taken = std::max<std::size_t>(bytes, 1);
  void* const data = make_host_memory(taken).release();
  std::memset(data, 0, taken);
  return Memory(data, bytes, [index = context_.index()](void* address) {
    cudaSetDevice(index);
    cudaFreeHost(address);
  });
}

// Some systems and cards (MIG) cannot export memory. This is no error: the caller then copies through the host.
std::string CudaDevice::export_memory(const Memory& memory) {
  context_.use();
  cudaIpcMemHandle_t handle{};
  if (cudaIpcGetMemHandle(&handle, memory.data()) != cudaSuccess) {
    (void)cudaGetLastError();
    return {};
  }
  return std::string(handle.reserved, sizeof handle.reserved);
}

Memory CudaDevice::import_memory(const std::string& exported) {
  cudaIpcMemHandle_t handle{};
  if (exported.size() != sizeof handle.reserved) return {};
  std::memcpy(handle.reserved, exported.data(), exported.size());
  context_.use();
  void* data = nullptr;
  if (cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) {
    (void)cudaGetLastError();
    return {};
  }
  return Memory(data, 0, [index = context_.index()](void* address) {
    cudaSetDevice(index);
    cudaIpcCloseMemHandle(address);
  });
}

bool CudaDevice::has(OpKind kind, DType dtype) const {
  if (!is_half(dtype)) return supports(dtype);
  const bool recurrent = kind == OpKind::rnn_forward || kind == OpKind::rnn_backward;
  if (dtype == DType::bf16 && recurrent && cudnnGetVersion() < kRnnBf16Version) {
    context_.fallbacks().note("recurrent layers in bf16",
                              "cuDNN before 9.13 does not support them; they compute in f32");
    return false;
  }
  return computes_in_halves(kind);
}

// Convolutions of halves use the library's ranking; those of f32 and f64 are plain; all other ops follow their first
// activation.
LayoutWish CudaDevice::layouts(const OpSpec& spec) const {
  LayoutWish wish{spec.layouts};
  if (spec.kind == OpKind::reorder) return wish;
  const std::vector<ArgInfo> args = signature(spec);
  const auto first = std::find_if(args.begin(), args.end(), [](const ArgInfo& arg) { return arg.movable; });
  if (first == args.end()) return wish;
  Layout like = spec.layouts[static_cast<std::size_t>(first - args.begin())];
  if (std::holds_alternative<ConvDims>(spec.dims)) {
    context_.use();
    like = Layout::plain;
    if (is_half(spec.dtype)) {
      const auto [found, fresh] = conv_layouts_.try_emplace(spec.text(), Layout::plain);
      if (fresh) found->second = half_conv_layout(context_, spec);
      like = found->second;
    }
  }
  for (std::size_t a = 0; a < args.size(); ++a)
    if (args[a].movable) wish.layouts[a] = like;
  return wish;
}

// Images are all plain or all channels_last; only reorders convert between them.
void CudaDevice::check(const OpSpec& spec) const {
  if (!has(spec.kind, spec.dtype))
    throw ConfigError(fmt::format("device cuda does not compute {} in {}", name_of(spec.kind), name_of(spec.dtype)));
  if (spec.kind == OpKind::reorder) return;
  const std::vector<ArgInfo> args = signature(spec);
  const auto first = std::find_if(args.begin(), args.end(), [](const ArgInfo& arg) { return arg.movable; });
  for (std::size_t a = 0; a < args.size(); ++a) {
    const Layout layout = spec.layouts[a];
    const bool same = !args[a].movable || layout == spec.layouts[static_cast<std::size_t>(first - args.begin())];
    if (!same || (layout != Layout::plain && layout != Layout::channels_last))
      throw ConfigError(fmt::format("device cuda does not compute {} with argument {} in layout {}", name_of(spec.kind),
                                    args[a].name, name_of(layout)));
  }
}

std::unique_ptr<Op> CudaDevice::make(const OpSpec& spec) {
  context_.use();
  check(spec);
  switch (spec.kind) {
#define X(kind) case OpKind::kind:
#define F(family, family_dims, kinds) kinds return make_##family(context_, spec);
    ECHELON_OP_FAMILIES(F)
#undef F
#undef X
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Device> make_device(const DeviceOptions& options) {
  int visible = 0;
  ECHELON_CUDA(cudaGetDeviceCount(&visible));
  ECHELON_CHECK_GE(options.index, 0);
  if (visible == 0) throw EnvironmentError("no usable CUDA device was found");
  return std::make_unique<CudaDevice>(options.index % visible, options);
}

}  // namespace echelon::cuda
