#include "device/op_spec.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "base/dims.hpp"
#include "device/signature.hpp"

namespace echelon::inline device {

std::string_view name_of(OpKind kind) {
  switch (kind) {
#define X(name) \
  case OpKind::name: return #name;
    ECHELON_OP_KINDS(X)
#undef X
  }
  return "?";
}

std::vector<OpKind> all_op_kinds() {
  return {
#define X(name) OpKind::name,
      ECHELON_OP_KINDS(X)
#undef X
  };
}

std::int64_t ConvDims::P() const { return window_extent(H, R, stride_h, pad_h, dil_h); }
std::int64_t ConvDims::Q() const { return window_extent(W, S, stride_w, pad_w, dil_w); }
std::int64_t PoolDims::P() const { return window_extent(H + more_below, R, stride_h, pad_h); }
std::int64_t PoolDims::Q() const { return window_extent(W, S, stride_w, pad_w); }

int ConcatDims::inputs() const {
  return static_cast<int>(std::find(channels.begin(), channels.end(), 0) - channels.begin());
}
std::int64_t ConcatDims::C() const { return std::accumulate(channels.begin(), channels.end(), std::int64_t{0}); }

namespace {

template <class D>
void check_window(const D& d) {
  ECHELON_CHECK_GE(d.pad_h, 0);
  ECHELON_CHECK_GE(d.pad_w, 0);
  ECHELON_CHECK_GE(d.stride_h, 1);
  ECHELON_CHECK_GE(d.stride_w, 1);
  ECHELON_CHECK(d.P() >= 1 && d.Q() >= 1, "a window of {}x{} does not fit into an image of {}x{}", d.R, d.S, d.H, d.W);
}

void add_args(Signature& sig, const OpSpec& spec, const ConvDims& d) {
  ECHELON_CHECK(d.groups >= 1 && d.C % d.groups == 0 && d.K % d.groups == 0,
                "{} groups do not divide {} input and {} output channels", d.groups, d.C, d.K);
  check_window(d);
  const Shape x{d.N, d.C, d.H, d.W}, w{d.K, d.C / d.groups, d.R, d.S}, y{d.N, d.K, d.P(), d.Q()}, b{d.K};
  switch (spec.kind) {
    case OpKind::conv_forward:
      sig.in("x", x).movable().in("w", w).parameter();
      if (d.bias) sig.in("b", b).parameter();
      sig.out("y", y).movable();
      return;
    case OpKind::conv_backward_data:
      sig.in("dy", y).movable().in("w", w).parameter().out("dx", x).adds().movable();
      return;
    case OpKind::conv_backward_weights:
      sig.in("x", x).movable().in("dy", y).movable().out("dw", w).adds().wide();
      if (d.bias) sig.out("db", b).adds().wide();
      return;
    default: wrong_dims(spec);
  }
}

void add_args(Signature& sig, const OpSpec& spec, const PoolDims& d) {
  check_window(d);
  const std::int64_t below = d.pad_h + d.more_below;
  ECHELON_CHECK(below >= 0 && std::max(d.pad_h, below) < d.R && d.pad_w < d.S,
                "padding of {}, {} rows, {} columns for windows of {}x{}", d.pad_h, below, d.pad_w, d.R, d.S);
  ECHELON_CHECK(!d.relu || d.mode == PoolMode::max, "only a max pool holds a ReLU");
  const Shape x{d.N, d.C, d.H, d.W}, y{d.N, d.C, d.P(), d.Q()};
  switch (spec.kind) {
    case OpKind::pool_forward: sig.in("x", x).movable().out("y", y).movable(); return;
    case OpKind::pool_backward: sig.in("dy", y).movable().out("dx", x).adds().movable(); return;
    default: wrong_dims(spec);
  }
}

void add_args(Signature& sig, const OpSpec& spec, const DenseDims& d) {
  const Shape x{d.N, d.F}, w{d.K, d.F}, y{d.N, d.K}, b{d.K};
  switch (spec.kind) {
    case OpKind::dense_forward:
      sig.in("x", x).in("w", w).parameter();
      if (d.bias) sig.in("b", b).parameter();
      sig.out("y", y);
      return;
    case OpKind::dense_backward_data: sig.in("dy", y).in("w", w).parameter().out("dx", x).adds(); return;
    case OpKind::dense_backward_weights:
      sig.in("x", x).in("dy", y).out("dw", w).adds().wide();
      if (d.bias) sig.out("db", b).adds().wide();
      return;
    default: wrong_dims(spec);
  }
}

void add_args(Signature& sig, const OpSpec& spec, const ActivationDims& d) {
  switch (spec.kind) {
    case OpKind::activation_forward: sig.in("x", d.shape).movable().out("y", d.shape).movable(); return;
    case OpKind::activation_backward:
      sig.in(d.function == Activation::gelu ? "x" : "y", d.shape)
          .movable()
          .in("dy", d.shape)
          .movable()
          .out("dx", d.shape)
          .adds()
          .movable();
      return;
    default: wrong_dims(spec);
  }
}

void add_args(Signature& sig, const OpSpec& spec, const NormDims& d) {
  const Shape x{d.N, d.C, d.H, d.W}, c{d.C}, two{2, d.C};
  switch (spec.kind) {
    case OpKind::norm_moments: sig.in("x", x).movable().out("sums", two, DType::f64); return;
    case OpKind::norm_normalise:
      sig.in("x", x).movable().in("gamma", c).parameter().in("beta", c).parameter().in("sums", two, DType::f64);
      sig.out("y", x).movable().out("stats", two, DType::f64);
      return;
    case OpKind::norm_backward_sums:
      sig.in("x", x).movable().in("dy", x).movable().in("stats", two, DType::f64);
      if (d.relu) sig.in("gamma", c).parameter().in("beta", c).parameter();
      sig.out("sums", two, DType::f64).out("dgamma", c).adds().wide().out("dbeta", c).adds().wide();
      return;
    case OpKind::norm_backward_apply:
      sig.in("x", x).movable().in("dy", x).movable().in("stats", two, DType::f64).in("gamma", c).parameter();
      if (d.relu) sig.in("beta", c).parameter();
      sig.in("sums", two, DType::f64).out("dx", x).adds().movable();
      return;
    case OpKind::norm_local_forward:
      sig.in("x", x).movable().in("gamma", c).parameter().in("beta", c).parameter();
      sig.out("y", x).movable().out("stats", two, DType::f64);
      return;
    case OpKind::norm_local_backward:
      sig.in("x", x).movable().in("dy", x).movable().in("stats", two, DType::f64).in("gamma", c).parameter();
      if (d.relu) sig.in("beta", c).parameter();
      sig.out("dx", x).adds().movable().out("dgamma", c).adds().wide().out("dbeta", c).adds().wide();
      return;
    case OpKind::norm_statistics:
      sig.in("stats", two, DType::f64).out("dmean", c).adds().wide().out("dvar", c).adds().wide();
      return;
    case OpKind::norm_inference:
      sig.in("x", x).movable().in("gamma", c).parameter().in("beta", c).parameter();
      sig.in("mean", c).parameter().in("var", c).parameter().out("y", x).movable();
      return;
    case OpKind::norm_renorm:
      sig.in("sums", two, DType::f64).in("gamma", c).parameter().in("beta", c).parameter();
      sig.in("mean", c).parameter().in("var", c).parameter().out("gamma2", c).wide().out("beta2", c).wide();
      sig.out("correction", two).wide();
      return;
    case OpKind::norm_renorm_backward:
      sig.in("dgamma2", c).wide().in("dbeta2", c).wide().in("correction", two).wide();
      sig.out("dgamma", c).adds().wide().out("dbeta", c).adds().wide();
      return;
    default: wrong_dims(spec);
  }
}

void add_args(Signature& sig, const OpSpec& spec, const SoftmaxDims& d) {
  ECHELON_CHECK(d.smoothing >= 0 && d.smoothing < 1, "a label smoothing of {}", d.smoothing);
  const Shape x{d.N, d.K}, n{d.N};
  switch (spec.kind) {
    case OpKind::loss_softmax_forward:
      sig.in("logits", x).in("labels", n, DType::i32).in("weights", n);
      sig.out("probs", x).out("sums", Shape{3}, DType::f64).adds();
      return;
    case OpKind::loss_softmax_backward:
      sig.in("probs", x).in("labels", n, DType::i32).in("weights", n).out("dlogits", x).adds();
      return;
    default: wrong_dims(spec);
  }
}

void add_args(Signature& sig, const OpSpec& spec, const SoftmaxPartDims& d) {
  ECHELON_CHECK_LE(d.first + d.K, d.classes, "classes of a part");
  const Shape x{d.N, d.K}, n{d.N}, partials{d.N, d.kPartials}, all{d.N, d.kPartials * d.parts};
  if (spec.kind == OpKind::loss_softmax_part)
    sig.in("logits", x).in("labels", n, DType::i32).out("partials", partials);
  else if (spec.kind == OpKind::loss_softmax_join)
    sig.in("partials", all).in("weights", n).out("norms", n).out("sums", Shape{3}, DType::f64).adds();
  else if (spec.kind == OpKind::loss_softmax_part_backward)
    sig.in("logits", x).in("norms", n).in("labels", n, DType::i32).in("weights", n).out("dlogits", x).adds();
  else
    wrong_dims(spec);
}

void add_args(Signature& sig, const OpSpec& spec, const DropoutDims& d) {
  if (spec.kind != OpKind::dropout) wrong_dims(spec);
  ECHELON_CHECK(d.rate >= 0 && d.rate < 1, "a dropout rate of {}", d.rate);
  sig.in("x", d.shape).movable().in("ids", Shape{d.shape[0]}, DType::i32).out("y", d.shape).adds().movable();
}

void add_args(Signature& sig, const OpSpec& spec, const ConcatDims& d) {
  static constexpr std::string_view kNames[kMaxConcat] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6"};
  if (spec.kind != OpKind::concat) wrong_dims(spec);
  ECHELON_CHECK_GE(d.inputs(), 1);
  for (int i = 0; i < d.inputs(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    sig.in(kNames[at], Shape{d.N, d.channels[at], d.H, d.W}).movable();
  }
  sig.out("y", Shape{d.N, d.C(), d.H, d.W}).movable();
}

void add_args(Signature& sig, const OpSpec& spec, const SliceDims& d) {
  if (spec.kind != OpKind::slice) wrong_dims(spec);
  ECHELON_CHECK(d.first >= 0 && d.count >= 1 && d.first + d.count <= d.C, "channels [{}, {}) of {}", d.first,
                d.first + d.count, d.C);
  const Shape x{d.N, d.C, d.H, d.W}, y{d.N, d.count, d.H, d.W};
  if (d.indices)
    sig.in("x", x, DType::i32).out("y", y, DType::i32);
  else
    sig.in("x", x).movable().out("y", y).adds().movable();
}

void add_args(Signature& sig, const OpSpec& spec, const LrnDims& d) {
  ECHELON_CHECK_GE(d.size, 1);
  const Shape x{d.N, d.C, d.H, d.W};
  switch (spec.kind) {
    case OpKind::lrn_forward: sig.in("x", x).movable().out("y", x).movable(); return;
    case OpKind::lrn_backward: sig.in("x", x).movable().in("dy", x).movable().out("dx", x).adds().movable(); return;
    default: wrong_dims(spec);
  }
}

void add_args(Signature& sig, const OpSpec& spec, const LayerNormDims& d) {
  ECHELON_CHECK(d.F >= 1 && d.shape.elems() % d.F == 0, "rows of {} in {}", d.F, d.shape.text());
  const Shape f{d.F}, stats{2, d.rows()};
  switch (spec.kind) {
    case OpKind::layer_norm_forward:
      sig.in("x", d.shape).in("gamma", f).parameter().in("beta", f).parameter();
      sig.out("y", d.shape).out("stats", stats, DType::f64);
      return;
    case OpKind::layer_norm_backward:
      sig.in("x", d.shape).in("dy", d.shape).in("stats", stats, DType::f64).in("gamma", f).parameter();
      sig.out("dx", d.shape).adds().out("dgamma", f).adds().wide().out("dbeta", f).adds().wide();
      return;
    default: wrong_dims(spec);
  }
}

void add_args(Signature& sig, const OpSpec& spec, const ValueLossDims& d) {
  const Shape x{d.elems};
  sig.in("x", x);
  if (d.index_targets)
    sig.in("targets", x, DType::i32);
  else
    sig.in("targets", x);
  sig.in("weights", x);
  switch (spec.kind) {
    case OpKind::loss_values_forward: sig.out("sums", Shape{3}, DType::f64).adds(); return;
    case OpKind::loss_values_backward: sig.out("dx", x).adds(); return;
    default: wrong_dims(spec);
  }
}

void add_args(Signature& sig, const OpSpec& spec, const ElementwiseDims& d) {
  if (spec.kind != OpKind::add) wrong_dims(spec);
  sig.in("a", d.shape).movable().in("b", d.shape).movable().out("y", d.shape).movable();
}

void add_args(Signature& sig, const OpSpec& spec, const ReorderDims& d) {
  if (spec.kind != OpKind::reorder) wrong_dims(spec);
  sig.in("x", d.shape, d.from.value_or(spec.dtype)).movable().out("y", d.shape).movable();
}

}  // namespace

std::vector<ArgInfo> signature(const OpSpec& spec) {
  Signature sig(spec.dtype);
  std::visit([&](const auto& d) { add_args(sig, spec, d); }, spec.dims);
  std::vector<ArgInfo> args = sig.take();
  for (const ArgInfo& arg : args)
    ECHELON_CHECK_GT(arg.shape.elems(), 0, "argument {} of {} is empty", arg.name, spec.text());
  return args;
}

int place_of(const std::vector<ArgInfo>& args, std::string_view name) {
  const auto found = std::find_if(args.begin(), args.end(), [&](const ArgInfo& arg) { return arg.name == name; });
  return found == args.end() ? -1 : static_cast<int>(found - args.begin());
}

}  // namespace echelon::inline device
