// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_on_cpu/device.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/kernels/channel_sums.hpp"
#include "cuda/kernels/direct_conv.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/make.hpp"
#include "device/host_device.hpp"

namespace echelon::cuda {
namespace {

template <class T>
KernelOp::Body conv_body(const OpSpec& spec, const ConvDims& d) {
  using P = Wide<T>;
  const Layout layout = spec.layouts[0];
  const ChannelExtents output = channel_extents(d.N, d.K, d.out().cells(), layout);
  if (spec.kind == OpKind::conv_forward)
    return [=](const OpArgs& a, cudaStream_t stream) {
      T* y = tensor<T>(a, d.bias ? 3 : 2);
      direct_conv_forward(d, layout, tensor<const T>(a, 0), tensor<const P>(a, 1), y, stream);
      if (d.bias) add_bias(y, tensor<const P>(a, 2), output, stream);
    };
  if (spec.kind == OpKind::conv_backward_data)
    return [=](const OpArgs& a, cudaStream_t stream) {
      direct_conv_backward_data(d, layout, tensor<const T>(a, 0), tensor<const P>(a, 1), tensor<T>(a, 2), adds(a, 2),
                                stream);
    };
  return [=](const OpArgs& a, cudaStream_t stream) {
    const T *x = tensor<const T>(a, 0), *dy = tensor<const T>(a, 1);
    direct_conv_backward_weights(d, layout, x, dy, tensor<P>(a, 2), adds(a, 2), stream);
    if (d.bias) bias_gradient(dy, tensor<P>(a, 3), output, adds(a, 3), a.scratch, stream);
  };
}

}  // namespace

std::unique_ptr<Op> make_conv(const Context& context, const OpSpec& spec) {
  const auto& d = std::get<ConvDims>(spec.dims);
  const auto output = channel_extents(d.N, d.K, d.out().cells(), spec.layouts[0]);
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    return std::make_unique<KernelOp>(context, spec, conv_body<T>(spec, d), channel_scratch_bytes(output, 1));
  });
}
std::unique_ptr<Op> make_rnn(const Context&, const OpSpec&) { throw ConfigError("recurrent layers are cuDNN's"); }

}  // namespace echelon::cuda

namespace echelon::on_cpu {
namespace {

// A copy of a range of memory with exactly its size and its offset from a multiple of 64 bytes.
class Copy {
 public:
  Copy(void* from, std::size_t bytes) : from_(from), bytes_(bytes) {
    if (from == nullptr || bytes == 0) return;
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(from) % kAlignment;
    void* block = nullptr;
    if (posix_memalign(&block, kAlignment, offset + bytes) != 0) throw std::bad_alloc();
    block_.reset(static_cast<std::byte*>(block));
    data_ = block_.get() + offset;
    std::memcpy(data_, from, bytes);
  }
  void* data() const { return data_; }
  void give_back() const {
    if (data_) std::memcpy(from_, data_, bytes_);
  }

 private:
  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };
  static constexpr std::size_t kAlignment = 64;
  void* from_;
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> block_;
  void* data_ = nullptr;
};

// Runs an op on copies of its arguments.
class Exact final : public Op {
 public:
  Exact(std::unique_ptr<Op> op, const OpSpec& spec) : op_(std::move(op)) {
    const std::vector<ArgInfo> args = signature(spec);
    for (std::size_t a = 0; a < args.size(); ++a)
      bytes_.push_back(static_cast<std::size_t>(stored_elems(args[a].shape, spec.layouts[a])) * size_of(args[a].dtype));
  }
  std::size_t saved_bytes() const override { return op_->saved_bytes(); }
  std::size_t scratch_bytes() const override { return op_->scratch_bytes(); }
  std::string implementation() const override { return op_->implementation(); }
  void run(const OpArgs& args) override {
    std::vector<Copy> copies;
    std::vector<void*> tensors;
    for (std::size_t a = 0; a < bytes_.size(); ++a)
      tensors.push_back(copies.emplace_back(args.tensors[a], bytes_[a]).data());
    OpArgs exact = args;
    exact.tensors = tensors.data();
    exact.saved = copies.emplace_back(args.saved, saved_bytes()).data();
    exact.scratch = copies.emplace_back(args.scratch, scratch_bytes()).data();
    op_->run(exact);
    for (const Copy& copy : copies) copy.give_back();
  }

 private:
  std::unique_ptr<Op> op_;
  std::vector<std::size_t> bytes_;
};

class CudaOnCpu final : public HostDevice {
 public:
  CudaOnCpu() : HostDevice({}), context_(0, {}), vector_ops_(cuda::make_vector_ops(context_)) {}

  std::string_view name() const override { return "cuda"; }
  std::string describe() const override { return "CUDA's kernels on the CPU"; }
  bool supports(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64 || is_half(dtype); }
  bool has(OpKind kind, DType dtype) const override {
    if (kind == OpKind::rnn_forward || kind == OpKind::rnn_backward) return false;
    return is_half(dtype) ? computes_in_halves(kind) : supports(dtype);
  }
  Memory allocate(std::size_t bytes, std::string_view tag) override { return context_.allocate(bytes, tag); }
  std::size_t allocated_bytes() const override { return context_.allocated_bytes(); }
  std::size_t peak_bytes() const override { return context_.peak_bytes(); }

  // Convolutions ask for channels last, and all other ops follow their first activation, so that each runs in both
  // layouts.
  LayoutWish layouts(const OpSpec& spec) const override {
    LayoutWish wish{spec.layouts};
    const std::vector<ArgInfo> args = signature(spec);
    const auto first = std::find_if(args.begin(), args.end(), [](const ArgInfo& arg) { return arg.movable; });
    if (spec.kind == OpKind::reorder || first == args.end()) return wish;
    const bool conv = std::holds_alternative<ConvDims>(spec.dims);
    const Layout like = conv ? Layout::channels_last : spec.layouts[static_cast<std::size_t>(first - args.begin())];
    for (std::size_t a = 0; a < args.size(); ++a)
      if (args[a].movable) wish.layouts[a] = like;
    return wish;
  }
  std::unique_ptr<Op> make(const OpSpec& spec) override { return std::make_unique<Exact>(make_op(spec), spec); }
  std::unique_ptr<Update> make_update(std::string_view rule, DType dtype) override {
    return cuda::make_update(context_, rule, dtype);
  }
  VectorOps& vector_ops() override { return *vector_ops_; }
  std::unique_ptr<DeviceCodec> make_codec(const DeviceCodecSpec& spec) override {
    return cuda::make_codec(context_, spec);
  }

 private:
  std::unique_ptr<Op> make_op(const OpSpec& spec) {
    switch (spec.kind) {
#define X(kind) case OpKind::kind:
#define F(family, family_dims, kinds) kinds return cuda::make_##family(context_, spec);
      ECHELON_OP_FAMILIES(F)
#undef F
#undef X
    }
    return nullptr;
  }

  cuda::Context context_;
  std::unique_ptr<VectorOps> vector_ops_;
};

}  // namespace

std::unique_ptr<Device> make_device() { return std::make_unique<CudaOnCpu>(); }

}  // namespace echelon::on_cpu
