// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/cores.hpp"
#include "base/error.hpp"
#include "base/processor.hpp"
#include "base/text.hpp"
#include "device/host_device.hpp"
#include "device/onednn/onednn.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/tiles.hpp"

namespace echelon::inline device {
namespace onednn {

namespace {

// Sets the library's ISA limit, which it reads only at its first use.
void limit_library() {
  if (max_isa() == Isa::amx) return;  // ONEDNN_MAX_CPU_ISA may still say less
  using Library = dnnl::cpu_isa;
  constexpr Library kLimits[] = {Library::avx2, Library::avx512_core, Library::avx512_core_bf16};
  const Library limit = kLimits[static_cast<std::size_t>(max_isa())];
  if (dnnl::set_max_cpu_isa(limit) == dnnl::status::success || dnnl::get_effective_cpu_isa() <= limit) return;
  throw EnvironmentError(fmt::format(
      "oneDNN cannot apply ECHELON_MAX_ISA={}, because it was built without ONEDNN_ENABLE_MAX_CPU_ISA; unset the "
      "variable",
      echelon::name_of(max_isa())));
}

// On other processors than x86-64 the library names instructions that they do not have.
bool library_uses(dnnl::cpu_isa isa) {
  if (!kX86) return false;
  const auto needed = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}

}  // namespace

dnnl::engine cpu_engine() {
  static const bool limited = (limit_library(), true);
  (void)limited;
  return {dnnl::engine::kind::cpu, 0};
}

bool Context::avx512() const { return processor_has(Isa::avx512) && library_uses(dnnl::cpu_isa::avx512_core); }

bool Context::avx512_bf16() const { return multiplies_bf16() && library_uses(dnnl::cpu_isa::avx512_core_bf16); }

bool Context::amx() const { return avx512_bf16() && library_uses(dnnl::cpu_isa::avx512_core_amx); }

bool Context::tiles() const { return amx() && multiplies_tiles(); }

Layout Context::blocked() const { return avx512() ? Layout::blocked16 : Layout::blocked8; }

void claim_threads(int threads) {
  if (omp_get_dynamic()) omp_set_dynamic(0);
  if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

dnnl::memory::desc describe(const Shape& shape, Layout layout, dnnl::memory::data_type type) {
  using Tag = dnnl::memory::format_tag;
  const dnnl::memory::dims extents(shape.extents().begin(), shape.extents().end());
  const bool volume = shape.rank() == 5;
  switch (layout) {
    case Layout::channels_last: return {extents, type, volume ? Tag::ndhwc : Tag::nhwc};
    case Layout::blocked8: return {extents, type, volume ? Tag::nCdhw8c : Tag::nChw8c};
    case Layout::blocked16: return {extents, type, volume ? Tag::nCdhw16c : Tag::nChw16c};
    case Layout::plain: break;
  }
  dnnl::memory::dims strides(extents.size(), 1);
  for (std::size_t i = extents.size(); i > 1; --i) strides[i - 2] = strides[i - 1] * extents[i - 1];
  return {extents, type, strides};
}

namespace {

const char* isa_name() {
  using Library = dnnl::cpu_isa;
  return library_uses(Library::avx512_core) ? "AVX-512"
         : library_uses(Library::avx2)      ? "AVX2"
         : kX86                             ? "SSE4.1"
                                            : "NEON";
}

// oneDNN divides its loops by the number of threads that it requests: with fewer, sums are wrong and barriers wait for
// ever.
int require_threads(int threads) {
  const int most = openmp_threads_at_most();
  if (threads <= most) return std::max(1, threads);
  throw EnvironmentError(fmt::format(
      "OpenMP may start only {} (OMP_THREAD_LIMIT, OMP_MAX_ACTIVE_LEVELS), but device.threads = {} needs more; "
      "unset the variable, or set device.threads = {}",
      counted(most, "thread"), threads, most));
}

class OnednnDevice final : public HostDevice {
 public:
  explicit OnednnDevice(const DeviceOptions& options)
      : HostDevice(options), context_{*this, require_threads(options.threads), this->options().conv_table} {
    if (options.tf32 && !context_.avx512_bf16()) throw EnvironmentError(bf16_products_problem());
  }

  std::string_view name() const override { return "onednn"; }
  std::string describe() const override {
    return fmt::format("{}, {} {}, {}{}{}", cpu_name(), context_.threads, context_.threads == 1 ? "thread" : "threads",
                       isa_name(), halves_text(), options().tf32 ? ", products of f32 in bf16" : "");
  }
  bool supports(DType dtype) const override { return dtype == DType::f32 || has_halves(dtype); }
  bool has(OpKind kind, DType dtype) const override {
    return supports(dtype) && (!is_half(dtype) || computes_in_halves(kind));
  }

  LayoutWish layouts(const OpSpec& spec) const override;
  std::unique_ptr<Op> make(const OpSpec& spec) override;

 private:
  const char* halves_text() const {
    return options().emulate_halves ? ", halves emulated"
           : amx()                  ? " with AMX"
           : context_.avx512_bf16() ? " with BF16"
                                    : "";
  }
  bool amx() const { return processor_has(Isa::amx) && library_uses(dnnl::cpu_isa::avx512_core_amx); }
  bool native(DType half) const {
    if (options().emulate_halves) return false;
    return half == DType::bf16 ? context_.avx512_bf16() : multiplies_halves(half);
  }
  bool has_halves(DType dtype) const { return is_half(dtype) && (options().emulate_halves || native(dtype)); }
  // The precision of ops that multiply.
  Precision precision(DType dtype) const {
    if (!is_half(dtype)) return options().tf32 ? kSingleByHalves : kSingle;
    if (dtype == DType::f16) return native(dtype) ? kF16 : kEmulatedF16;
    return native(dtype) ? kHalves : kEmulatedHalves;
  }
  void require(const OpSpec& spec) const;
  std::unique_ptr<Op> build(const OpSpec& spec);
  std::unique_ptr<Op> build_halves(const OpSpec& spec);
  std::unique_ptr<Op> build_rounded(const OpSpec& spec);

  mutable Context context_;
};

// Convolutions choose a layout; all other ops follow their first activation.
LayoutWish OnednnDevice::layouts(const OpSpec& spec) const {
  LayoutWish wish{spec.layouts};
  if (spec.kind == OpKind::reorder) return wish;
  const std::vector<ArgInfo> args = signature(spec);
  const auto* conv = std::get_if<ConvDims>(&spec.dims);
  if (conv) {
    claim_threads(context_.threads);
    const auto first = std::find_if(args.begin(), args.end(), [](const ArgInfo& arg) { return arg.movable; });
    const Layout given =
        first == args.end() ? Layout::plain : spec.layouts[static_cast<std::size_t>(first - args.begin())];
    const ConvLayouts best = best_conv_layouts(context_, *conv, precision(spec.dtype), given);
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

// The type of arguments in halves; another type if there are none.
DType half_of(const OpSpec& spec) {
  const auto* reorder = std::get_if<ReorderDims>(&spec.dims);
  return is_half(spec.dtype) || !reorder ? spec.dtype : reorder->from.value_or(spec.dtype);
}

void OnednnDevice::require(const OpSpec& spec) const {
  const auto* reorder = std::get_if<ReorderDims>(&spec.dims);
  for (const DType dtype : {spec.dtype, reorder ? reorder->from.value_or(spec.dtype) : spec.dtype})
    if (is_half(dtype) && !has_halves(dtype))
      throw EnvironmentError(halves_problem(dtype));
    else if (!has(spec.kind, dtype))
      throw ConfigError(fmt::format("device onednn computes {} in f32{}, not in {}; use the reference device for f64",
                                    name_of(spec.kind), has(spec.kind, DType::bf16) ? " and bf16" : "",
                                    name_of(dtype)));
}

std::unique_ptr<Op> OnednnDevice::make(const OpSpec& spec) {
  require(spec);
  (void)signature(spec);  // refuses dims that no op has
  try {
    claim_threads(context_.threads);
    if (is_half(half_of(spec))) return build_halves(spec);
    auto rounded = options().tf32 ? build_rounded(spec) : nullptr;
    return rounded ? std::move(rounded) : build(spec);
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory)
      throw MemoryError(fmt::format("oneDNN cannot allocate memory for {}", spec.text()));
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

// Makes an f32 op by products of halves; null for kinds that multiply in f32 anyway.
std::unique_ptr<Op> OnednnDevice::build_rounded(const OpSpec& spec) {
  switch (spec.kind) {
    case OpKind::conv_forward:
    case OpKind::conv_backward_data:
    case OpKind::conv_backward_weights: return make_conv(context_, spec, kSingleByHalves);
    case OpKind::dense_forward:
    case OpKind::dense_backward_data:
    case OpKind::dense_backward_weights: return make_half_dense(context_, spec, kSingleByHalves);
    case OpKind::rnn_forward:
    case OpKind::rnn_backward: return make_rnn(context_, spec, kSingleByHalves);
    default: return nullptr;
  }
}

// Products are computed in halves, by the instructions that the processor has. Other kinds compute in f32 and widen
// what they load. Widened copies serve emulated products, the library's f32 products of attention, whose work grows
// faster than its arguments, pools that would round a sum at each of its terms, and all of f16 but the library's
// products.
std::unique_ptr<Op> OnednnDevice::build_halves(const OpSpec& spec) {
  const DType half = half_of(spec);
  const Precision in = precision(half);
  const bool native = in.halves();
  OpSpec wide = spec;
  wide.dtype = DType::f32;
  switch (spec.kind) {
    case OpKind::reorder: return make_half_reorder(context_, spec, native);
    case OpKind::conv_forward:
    case OpKind::conv_backward_data:
    case OpKind::conv_backward_weights: {
      auto conv = native ? make_conv(context_, spec, in) : nullptr;
      // In f16 the library has no optimised code for some, such as those of many groups.
      if (conv && (half == DType::bf16 || conv->implementation().find("ref") == std::string::npos)) return conv;
      return make_half_op(context_, spec, make_conv(context_, wide, half == DType::f16 ? kEmulatedF16 : in));
    }
    case OpKind::dense_forward:
    case OpKind::dense_backward_data:
    case OpKind::dense_backward_weights:
      return native ? make_half_dense(context_, spec, in)
                    : make_half_op(context_, spec, make_half_dense(context_, wide, in));
    case OpKind::rnn_forward:
    case OpKind::rnn_backward:
      if (half == DType::f16) return make_half_op(context_, spec, make_rnn(context_, wide, kSingle));
      return native && context_.tiles() ? make_rnn(context_, spec, in)
                                        : make_half_op(context_, spec, make_rnn(context_, wide, in));
    case OpKind::pool_forward:
    case OpKind::pool_backward:
      return half == DType::bf16 && pools_halves(spec) ? build(spec) : make_half_op(context_, spec, build(wide));
    case OpKind::attention_forward:
    case OpKind::attention_backward: return make_half_op(context_, spec, build(wide));
    default: return half == DType::bf16 ? build(spec) : make_half_op(context_, spec, build(wide));
  }
}

}  // namespace
}  // namespace onednn

bool multiplies_halves(DType half) {
  if (half == DType::bf16) return multiplies_bf16();
  return multiplies_f16() && onednn::kF16Isa && onednn::library_uses(*onednn::kF16Isa);
}

std::string halves_problem(DType half) {
  const bool bf16 = half == DType::bf16, has = bf16 ? multiplies_bf16() : multiplies_f16();
  const std::string but = !has ? half_instructions_text() + " (echelon info shows it)"
                          : onednn::kF16Isa
                              ? "oneDNN does not use it (ONEDNN_MAX_CPU_ISA)"
                              : "echelon is built with oneDNN 2, which does not (make ONEDNN=/prefix takes another)";
  return fmt::format(
      "device.dtype = \"{}\" on a CPU needs {}, but {}; set device.dtype = \"{}\", or device.emulate_halves = true, "
      "which rounds in f32 and is slower than f32",
      name_of(half), bf16 ? "AVX512_BF16" : "AMX_FP16 and oneDNN 3", but, bf16 || !multiplies_bf16() ? "f32" : "bf16");
}

std::string bf16_products_problem() {
  return fmt::format(
      "device.tf32 on a CPU rounds the operands of products to bf16 and needs AVX512_BF16, but {} (echelon info "
      "shows it); set device.tf32 = false",
      half_instructions_text());
}

std::unique_ptr<Device> make_onednn_device(const DeviceOptions& options) {
  const std::string_view missing = missing_instructions();
  if (!missing.empty())
    throw EnvironmentError(fmt::format(
        "this CPU does not have {}, for which echelon is compiled (x86-64-v3); run on a node with a CPU of 2013 "
        "or later, or build with `make MARCH=x86-64`",
        missing));
  return std::make_unique<onednn::OnednnDevice>(options);
}

}  // namespace echelon::inline device
