// What an op is called, and what it costs by formula.
#include <fmt/format.h>

#include "device/op_spec.hpp"

namespace echelon::inline device {
namespace {

double multiply_adds(const ConvDims& d) {
  return static_cast<double>(d.N * d.K * d.P() * d.Q()) * static_cast<double>(d.C / d.groups * d.R * d.S);
}

// " stride 2", " pad 1x2"; nothing where both are `usual`.
std::string pair_text(const char* name, std::int64_t h, std::int64_t w, std::int64_t usual) {
  if (h == usual && w == usual) return {};
  return h == w ? fmt::format(" {} {}", name, h) : fmt::format(" {} {}x{}", name, h, w);
}

std::string dims_text(const OpSpec& spec, const ConvDims& d) {
  return fmt::format("N{} C{} H{} W{} K{} {}x{}{}{}{}{}{}", d.N, d.C, d.H, d.W, d.K, d.R, d.S,
                     pair_text("stride", d.stride_h, d.stride_w, 1), pair_text("pad", d.pad_h, d.pad_w, 0),
                     pair_text("dil", d.dil_h, d.dil_w, 1), d.groups > 1 ? fmt::format(" groups {}", d.groups) : "",
                     d.bias || spec.kind == OpKind::conv_backward_data ? "" : " no bias");
}

std::string dims_text(const OpSpec&, const PoolDims& d) {
  const char* mode = d.mode == PoolMode::max              ? "max"
                     : d.mode == PoolMode::average_inside ? "average inside"
                                                          : "average all";
  return fmt::format("N{} C{} H{} W{} {} {}x{}{}{}{}{}", d.N, d.C, d.H, d.W, mode, d.R, d.S,
                     pair_text("stride", d.stride_h, d.stride_w, 1), pair_text("pad", d.pad_h, d.pad_w, 0),
                     d.more_below != 0 ? fmt::format(" below {}", d.pad_h + d.more_below) : "", d.relu ? " relu" : "");
}

std::string dims_text(const OpSpec& spec, const DenseDims& d) {
  return fmt::format("N{} F{} K{}{}", d.N, d.F, d.K,
                     d.bias || spec.kind == OpKind::dense_backward_data ? "" : " no bias");
}

std::string dims_text(const OpSpec&, const ActivationDims& d) {
  const char* name = d.function == Activation::relu   ? "relu"
                     : d.function == Activation::tanh ? "tanh"
                     : d.function == Activation::gelu ? "gelu"
                                                      : "sigmoid";
  return fmt::format("{} {}", name, d.shape.text());
}

std::string dims_text(const OpSpec& spec, const NormDims& d) {
  const bool renorm = spec.kind == OpKind::norm_renorm;
  return fmt::format("N{} C{} H{} W{}{}{}{}", d.N, d.C, d.H, d.W,
                     d.epsilon == 1e-5 ? "" : fmt::format(" epsilon {}", d.epsilon),
                     renorm ? fmt::format(" r {} d {}", d.r_max, d.d_max) : "", d.relu ? " relu" : "");
}

std::string dims_text(const OpSpec&, const SoftmaxDims& d) {
  return fmt::format("N{} K{}{}", d.N, d.K, d.smoothing > 0 ? fmt::format(" smoothing {}", d.smoothing) : "");
}

std::string dims_text(const OpSpec&, const SoftmaxPartDims& d) {
  return fmt::format("N{} K{} from {} of {} in {}{}", d.N, d.K, d.first, d.classes, d.parts,
                     d.smoothing > 0 ? fmt::format(" smoothing {}", d.smoothing) : "");
}

std::string dims_text(const OpSpec&, const DropoutDims& d) {
  return fmt::format("{} rate {}{}{}", d.shape.text(), d.rate, d.first > 0 ? fmt::format(" from {}", d.first) : "",
                     d.plane > 0 ? fmt::format(" of {} a channel", d.plane) : "");
}

std::string dims_text(const OpSpec&, const ConcatDims& d) {
  std::string channels;
  for (int i = 0; i < d.inputs(); ++i)
    channels += fmt::format("{}{}", i == 0 ? "" : "+", d.channels[static_cast<std::size_t>(i)]);
  return fmt::format("N{} C{} H{} W{}", d.N, channels, d.H, d.W);
}

std::string dims_text(const OpSpec&, const SliceDims& d) {
  return fmt::format("N{} C{} H{} W{} from {} to {}{}", d.N, d.C, d.H, d.W, d.first, d.first + d.count,
                     d.indices ? " of indices" : "");
}

std::string dims_text(const OpSpec&, const LrnDims& d) {
  return fmt::format("N{} C{} H{} W{} size {} alpha {} beta {} k {}", d.N, d.C, d.H, d.W, d.size, d.alpha, d.beta, d.k);
}

std::string dims_text(const OpSpec&, const LayerNormDims& d) {
  return fmt::format("{} rows of {}{}", d.shape.text(), d.F,
                     d.epsilon == 1e-5 ? "" : fmt::format(" epsilon {}", d.epsilon));
}

std::string dims_text(const OpSpec&, const ValueLossDims& d) {
  return fmt::format("{} {}{}", d.loss == ValueLoss::squared ? "squared" : "logistic", d.elems,
                     d.index_targets ? " of indices" : "");
}

std::string dims_text(const OpSpec&, const AttentionDims& d) {
  return fmt::format("N{} T{} S{} D{} heads {}{}{}", d.N, d.T, d.S, d.D, d.heads, d.causal ? " causal" : "",
                     d.lengths ? " lengths" : "");
}

std::string dims_text(const OpSpec&, const SequencePoolDims& d) {
  const char* mode = d.mode == SequencePool::sum ? "sum" : d.mode == SequencePool::mean ? "mean" : "last";
  return fmt::format("N{} T{} F{} {}{}", d.N, d.T, d.F, mode, d.lengths ? " lengths" : "");
}

std::string dims_text(const OpSpec&, const BroadcastDims& d) { return d.shape.text(); }

const char* cell_name(Cell cell) {
  switch (cell) {
    case Cell::tanh: return "tanh";
    case Cell::relu: return "relu";
    case Cell::lstm: return "lstm";
    case Cell::gru: return "gru";
  }
  return "?";
}

template <class D>
std::string lengths_text(const D& d) {
  return !d.lengths ? "" : d.first == 0 ? " lengths" : fmt::format(" lengths from {}", d.first);
}

std::string dims_text(const OpSpec& spec, const RnnDims& d) {
  const std::string arriving = spec.kind == OpKind::rnn_forward ? ""
                                                                : fmt::format("{}{}{}", d.dy ? "" : " no dy",
                                                                              d.dhn ? " dhn" : "", d.dcn ? " dcn" : "");
  return fmt::format("{} N{} T{} F{} H{}{}{}{}{}", cell_name(d.cell), d.N, d.T, d.F, d.H, d.reverse ? " reverse" : "",
                     d.initial ? " initial" : "", lengths_text(d), arriving);
}

std::string dims_text(const OpSpec&, const RnnStepDims& d) {
  return fmt::format("{} N{} T{} step {} H{} units {} to {}{}{}", cell_name(d.cell), d.N, d.T, d.t, d.H, d.begin,
                     d.begin + d.U, lengths_text(d), d.dy ? "" : " no dy");
}

std::string dims_text(const OpSpec&, const PlaceStepDims& d) {
  return fmt::format("N{} T{} step {} F{}{}", d.N, d.T, d.t, d.F, lengths_text(d));
}

std::string dims_text(const OpSpec&, const EmbeddingDims& d) {
  return fmt::format("{} of V{} F{}{}{}", d.rows, d.V, d.F, d.sparse ? " sparse" : "",
                     d.first > 0 ? fmt::format(" from {}", d.first) : "");
}

std::string dims_text(const OpSpec&, const ElementwiseDims& d) { return d.shape.text(); }

std::string dims_text(const OpSpec& spec, const ReorderDims& d) {
  return fmt::format("{} {}{} to {}", d.shape.text(), d.from ? fmt::format("{} ", name_of(*d.from)) : "",
                     name_of(spec.layouts[0]), name_of(spec.layouts[1]));
}

// Of the steps that a tensor (N, T, ..) has an op may see one alone.
double steps_of(const OpSpec& spec, const Shape& shape) {
  if (shape.rank() != 3) return 1;
  const bool one = std::holds_alternative<RnnStepDims>(spec.dims) || std::holds_alternative<PlaceStepDims>(spec.dims);
  return one ? static_cast<double>(shape[1]) : 1;
}

}  // namespace

std::string OpSpec::text() const {
  return fmt::format("{} {} {}", name_of(kind), name_of(dtype),
                     std::visit([this](const auto& d) { return dims_text(*this, d); }, dims));
}

double flops(const OpSpec& spec) {
  if (const auto* conv = std::get_if<ConvDims>(&spec.dims)) return 2 * multiply_adds(*conv);
  if (const auto* dense = std::get_if<DenseDims>(&spec.dims))
    return 2.0 * static_cast<double>(dense->N) * static_cast<double>(dense->F) * static_cast<double>(dense->K);
  if (const auto* rnn = std::get_if<RnnDims>(&spec.dims))
    return (spec.kind == OpKind::rnn_forward ? 2.0 : 4.0) * static_cast<double>(rnn->N * rnn->T) *
           static_cast<double>(rnn->G() * rnn->H) * static_cast<double>(rnn->F + rnn->H);
  if (const auto* step = std::get_if<RnnStepDims>(&spec.dims))
    return 2.0 * static_cast<double>(step->N * step->G() * step->U) * static_cast<double>(step->H);
  if (const auto* pool = std::get_if<PoolDims>(&spec.dims))
    return static_cast<double>(pool->N * pool->C * pool->P() * pool->Q()) * static_cast<double>(pool->R * pool->S);
  if (const auto* attention = std::get_if<AttentionDims>(&spec.dims)) {
    const double one =
        2.0 * static_cast<double>(attention->N * attention->T) * static_cast<double>(attention->S * attention->D);
    return one * (spec.kind == OpKind::attention_forward ? 2 : 4);
  }
  return static_cast<double>(signature(spec).front().shape.elems());
}

double traffic_bytes(const OpSpec& spec) {
  double bytes = 0;
  if (const auto* table = std::get_if<EmbeddingDims>(&spec.dims);
      table && (table->sparse || spec.kind == OpKind::embedding_forward))  // the rows of ids alone
    return static_cast<double>(table->rows * (4 + 2 * table->F * static_cast<std::int64_t>(size_of(spec.dtype))));
  for (const ArgInfo& arg : signature(spec))
    bytes +=
        static_cast<double>(arg.shape.elems()) * static_cast<double>(size_of(arg.dtype)) / steps_of(spec, arg.shape);
  return bytes;
}

}  // namespace echelon::inline device
