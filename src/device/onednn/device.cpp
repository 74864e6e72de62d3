#include <fmt/format.h>
#include <omp.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/error.hpp"
#include "device/host_device.hpp"
#include "device/onednn/onednn.hpp"
#include "device/onednn/ops.hpp"

namespace echelon::inline device {
namespace onednn {

bool Context::avx512() const {
  const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

Layout Context::blocked() const { return avx512() ? Layout::blocked16 : Layout::blocked8; }

void claim_threads(int threads) {
  if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

dnnl::memory::desc describe(const Shape& shape, Layout layout) {
  using Tag = dnnl::memory::format_tag;
  const dnnl::memory::dims extents(shape.extents().begin(), shape.extents().end());
  const auto f32 = dnnl::memory::data_type::f32;
  switch (layout) {
    case Layout::channels_last: return {extents, f32, Tag::nhwc};
    case Layout::blocked8: return {extents, f32, Tag::nChw8c};
    case Layout::blocked16: return {extents, f32, Tag::nChw16c};
    case Layout::plain: break;
  }
  dnnl::memory::dims strides(extents.size(), 1);
  for (std::size_t i = extents.size(); i > 1; --i) strides[i - 2] = strides[i - 1] * extents[i - 1];
  return {extents, f32, strides};
}

namespace {

const char* isa_name() {
  using Isa = dnnl::cpu_isa;
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [isa](Isa wanted) { return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted); };
  return has(Isa::avx512_core) ? "AVX-512" : has(Isa::avx2) ? "AVX2" : "SSE4.1";
}

class OnednnDevice final : public HostDevice {
 public:
  explicit OnednnDevice(const DeviceOptions& options)
      : HostDevice(options), context_{*this, std::max(1, options.threads)} {}

  std::string_view name() const override { return "onednn"; }
  std::string describe() const override {
    return fmt::format("{}, {} {}, {}", cpu_name(), context_.threads, context_.threads == 1 ? "thread" : "threads",
                       isa_name());
  }
  bool supports(DType dtype) const override { return dtype == DType::f32; }

  LayoutWish layouts(const OpSpec& spec) const override;
  std::unique_ptr<Op> make(const OpSpec& spec) override;

 private:
  std::unique_ptr<Op> build(const OpSpec& spec);

  mutable Context context_;
};

// Convolutions choose; everything else follows its first activation.
LayoutWish OnednnDevice::layouts(const OpSpec& spec) const {
  LayoutWish wish{spec.layouts};
  if (spec.kind == OpKind::reorder) return wish;
  const std::vector<ArgInfo> args = signature(spec);
  const auto* conv = std::get_if<ConvDims>(&spec.dims);
  if (conv) {
    claim_threads(context_.threads);
    const ConvLayouts best = best_conv_layouts(context_, *conv);
    for (std::size_t a = 0; a < args.size(); ++a) {
      if (!args[a].movable) continue;
      wish.layouts[a] = args[a].name.ends_with('y') ? best.y : best.x;
    }
    return wish;
  }
  if (const auto* concat = std::get_if<ConcatDims>(&spec.dims)) {  // like the widest input
    const auto& channels = concat->channels;
    const auto widest = static_cast<std::size_t>(std::max_element(channels.begin(), channels.end()) - channels.begin());
    for (std::size_t a = 0; a < args.size(); ++a) wish.layouts[a] = spec.layouts[widest];
    return wish;
  }
  const Layout* like = nullptr;
  for (std::size_t a = 0; a < args.size(); ++a) {
    if (!args[a].movable) continue;
    if (!like) like = &spec.layouts[a];
    wish.layouts[a] = *like;
  }
  return wish;
}

std::unique_ptr<Op> OnednnDevice::make(const OpSpec& spec) {
  if (!supports(spec.dtype))
    throw ConfigError(
        fmt::format("device onednn computes in f32 only, not {}; the reference device does both", name_of(spec.dtype)));
  (void)signature(spec);  // refuses dims that no op has
  try {
    claim_threads(context_.threads);
    return build(spec);
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) throw MemoryError(fmt::format("oneDNN has no memory for {}", spec.text()));
    throw EnvironmentError(fmt::format("oneDNN cannot build {}: {}", spec.text(), e.message));
  }
}

std::unique_ptr<Op> OnednnDevice::build(const OpSpec& spec) {
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
}  // namespace onednn

std::unique_ptr<Device> make_onednn_device(const DeviceOptions& options) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    throw EnvironmentError(
        "this CPU has no AVX2 and FMA, which echelon is compiled for (x86-64-v3); run on a node with a CPU of 2013 or "
        "later, or build with another -march in config.mk: CXXFLAGS += -march=x86-64");
  return std::make_unique<onednn::OnednnDevice>(options);
}

}  // namespace echelon::inline device
