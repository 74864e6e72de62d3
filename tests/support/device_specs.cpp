// The table of the device contract.
#include <algorithm>

#include "tests/support/device_contract.hpp"

namespace echelon::test {
namespace {

using Specs = std::vector<OpSpec>;

void add_convolutions(Specs& specs, DType dtype) {
  const ConvDims rows[] = {
      {.N = 2, .C = 1, .H = 8, .W = 8, .K = 16, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1},
      {.N = 3, .C = 1, .H = 28, .W = 28, .K = 20, .R = 5, .S = 5},
      {.N = 2, .C = 20, .H = 12, .W = 12, .K = 50, .R = 5, .S = 5},
      {.N = 1, .C = 1, .H = 1, .W = 1, .K = 1, .R = 1, .S = 1},
      {.N = 1, .C = 3, .H = 7, .W = 9, .K = 5, .R = 3, .S = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1},
      {.N = 2, .C = 17, .H = 6, .W = 5, .K = 33, .R = 1, .S = 1},
      {.N = 2, .C = 9, .H = 7, .W = 7, .K = 18, .R = 1, .S = 1, .stride_h = 2, .stride_w = 2, .bias = false},
      {.N = 2, .C = 8, .H = 9, .W = 9, .K = 16, .R = 3, .S = 3, .pad_h = 2, .pad_w = 2, .dil_h = 2, .dil_w = 2},
      {.N = 2, .C = 3, .H = 9, .W = 8, .K = 4, .R = 2, .S = 3, .dil_h = 3, .dil_w = 2},
      {.N = 2, .C = 6, .H = 8, .W = 7, .K = 9, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1, .groups = 3},
      {.N = 2, .C = 16, .H = 6, .W = 6, .K = 32, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1, .groups = 2, .bias = false},
      {.N = 2, .C = 10, .H = 7, .W = 7, .K = 10, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1, .groups = 10, .bias = false},
      {.N = 1, .C = 4, .H = 6, .W = 6, .K = 8, .R = 3, .S = 3, .stride_h = 2, .stride_w = 2, .groups = 4},
      {.N = 2, .C = 5, .H = 11, .W = 4, .K = 7, .R = 5, .S = 2, .stride_h = 3, .pad_h = 2, .bias = false},
      {.N = 2, .C = 16, .H = 17, .W = 17, .K = 17, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1},
      {.N = 5, .C = 65, .H = 4, .W = 4, .K = 65, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1},
      {.N = 1, .C = 3, .H = 32, .W = 33, .K = 16, .R = 7, .S = 7, .stride_h = 2, .stride_w = 2, .pad_h = 3, .pad_w = 3},
      {.N = 2, .C = 2, .H = 5, .W = 5, .K = 3, .R = 3, .S = 3, .pad_h = 2, .pad_w = 2},
      {.N = 33, .C = 2, .H = 4, .W = 3, .K = 2, .R = 4, .S = 3},
  };
  for (const ConvDims& d : rows)
    for (OpKind kind : {OpKind::conv_forward, OpKind::conv_backward_data, OpKind::conv_backward_weights})
      specs.push_back({kind, dtype, d, {}});
}

void add_pools(Specs& specs, DType dtype) {
  const PoolDims rows[] = {
      {.N = 2, .C = 20, .H = 24, .W = 24, .R = 2, .S = 2, .stride_h = 2, .stride_w = 2},
      {.N = 2, .C = 17, .H = 9, .W = 11, .R = 3, .S = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1},
      {.N = 1, .C = 1, .H = 7, .W = 6, .R = 2, .S = 2, .stride_h = 2, .stride_w = 2},
      {.N = 3, .C = 5, .H = 6, .W = 7, .R = 2, .S = 3, .stride_h = 1, .stride_w = 2},
      {.N = 2, .C = 33, .H = 7, .W = 7, .R = 7, .S = 7},
      {.N = 2, .C = 8, .H = 8, .W = 9, .R = 2, .S = 2, .stride_h = 3, .stride_w = 3},
      {.N = 1, .C = 16, .H = 5, .W = 5, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1},
      {.N = 1, .C = 3, .H = 4, .W = 1, .R = 3, .S = 1, .stride_h = 3, .pad_h = 2},
      {.N = 2, .C = 9, .H = 6, .W = 5, .R = 3, .S = 3, .stride_h = 2, .pad_w = 1, .more_below = 1},
      {.N = 2, .C = 16, .H = 5, .W = 7, .R = 3, .S = 2, .pad_h = 2, .more_below = -1},
      {.N = 1, .C = 4, .H = 6, .W = 4, .R = 2, .S = 2, .stride_h = 2, .stride_w = 2, .pad_h = 1, .more_below = -1},
      {.N = 2, .C = 8, .H = 3, .W = 4, .R = 2, .S = 2, .stride_h = 2, .stride_w = 2, .more_below = 1},
  };
  for (PoolDims d : rows)
    for (PoolMode mode : {PoolMode::max, PoolMode::average_inside, PoolMode::average_all})
      for (OpKind kind : {OpKind::pool_forward, OpKind::pool_backward}) {
        d.mode = mode;
        specs.push_back({kind, dtype, d, {}});
        d.relu = mode == PoolMode::max;
        if (d.relu) specs.push_back({kind, dtype, d, {}});
        d.relu = false;
      }
}

void add_dense(Specs& specs, DType dtype) {
  const DenseDims rows[] = {
      {.N = 1, .F = 1, .K = 1},   {.N = 3, .F = 17, .K = 10},  {.N = 16, .F = 129, .K = 65, .bias = false},
      {.N = 2, .F = 800, .K = 9}, {.N = 65, .F = 33, .K = 17}, {.N = 1, .F = 40, .K = 500},
  };
  for (const DenseDims& d : rows)
    for (OpKind kind : {OpKind::dense_forward, OpKind::dense_backward_data, OpKind::dense_backward_weights})
      specs.push_back({kind, dtype, d, {}});
}

void add_activations(Specs& specs, DType dtype) {
  for (const Shape& shape : {Shape{2, 17, 5, 3}, Shape{1, 1, 4, 4}, Shape{2, 32, 6, 6}, Shape{3, 500}, Shape{7}})
    for (Activation function : {Activation::relu, Activation::tanh, Activation::sigmoid, Activation::gelu})
      for (OpKind kind : {OpKind::activation_forward, OpKind::activation_backward})
        specs.push_back({kind, dtype, ActivationDims{shape, function}, {}});
}

void add_norms(Specs& specs, DType dtype) {
  const NormDims rows[] = {
      {.N = 2, .C = 3, .H = 4, .W = 5},  {.N = 1, .C = 17, .H = 8, .W = 8},
      {.N = 4, .C = 1, .H = 7, .W = 7},  {.N = 3, .C = 32, .H = 5, .W = 5, .epsilon = 1e-3},
      {.N = 9, .C = 10, .H = 1, .W = 1}, {.N = 3, .C = 16, .H = 17, .W = 33},
  };
  for (NormDims d : rows) {
    d.relu = false;
    for (OpKind kind : {OpKind::norm_moments, OpKind::norm_normalise, OpKind::norm_backward_sums,
                        OpKind::norm_backward_apply, OpKind::norm_local_forward, OpKind::norm_local_backward,
                        OpKind::norm_statistics, OpKind::norm_inference, OpKind::norm_renorm_backward})
      specs.push_back({kind, dtype, d, {}});
    d.relu = true;
    for (OpKind kind : {OpKind::norm_normalise, OpKind::norm_backward_sums, OpKind::norm_backward_apply,
                        OpKind::norm_local_forward, OpKind::norm_local_backward, OpKind::norm_inference})
      specs.push_back({kind, dtype, d, {}});
    d.relu = false;
    for (double bound : {1.0, 1.2, 5.0}) {
      d.r_max = bound, d.d_max = bound - 1;
      specs.push_back({OpKind::norm_renorm, dtype, d, {}});
    }
  }
}

void add_losses(Specs& specs, DType dtype) {
  for (const SoftmaxDims& d :
       {SoftmaxDims{1, 2}, SoftmaxDims{5, 10}, SoftmaxDims{65, 10}, SoftmaxDims{3, 1000}, SoftmaxDims{33, 17},
        SoftmaxDims{2, 1}, SoftmaxDims{33, 17, 0.1}, SoftmaxDims{4, 3, 0.75}})
    for (OpKind kind : {OpKind::loss_softmax_forward, OpKind::loss_softmax_backward})
      specs.push_back({kind, dtype, d, {}});
}

void add_softmax_parts(Specs& specs, DType dtype) {
  for (const SoftmaxPartDims& d :
       {SoftmaxPartDims{1, 2, 0, 2, 1}, SoftmaxPartDims{5, 10, 20, 33, 3}, SoftmaxPartDims{65, 10, 0, 40, 4},
        SoftmaxPartDims{3, 1000, 1000, 2000, 2}, SoftmaxPartDims{33, 17, 3, 20, 2, 0.1},
        SoftmaxPartDims{4, 1, 2, 3, 3, 0.75}, SoftmaxPartDims{40, 1500, 700, 2200, 2, 0.1}})
    for (OpKind kind : {OpKind::loss_softmax_part, OpKind::loss_softmax_join, OpKind::loss_softmax_part_backward})
      specs.push_back({kind, dtype, d, {}});
}

void add_dropouts(Specs& specs, DType dtype) {
  for (const Shape& shape : {Shape{3, 17, 5, 3}, Shape{1, 1, 4, 4}, Shape{2, 32, 6, 6}, Shape{5, 301}})
    for (double rate : {0.0, 0.5, 0.25}) specs.push_back({OpKind::dropout, dtype, DropoutDims{shape, rate}, {}});
  for (const Shape& shape : {Shape{3, 17, 5, 3}, Shape{2, 32, 6, 6}})  // some rows of taller images
    specs.push_back({OpKind::dropout, dtype, DropoutDims{shape, 0.25, 7, 50}, {}});
}

void add_channels(Specs& specs, DType dtype) {
  const ConcatDims concats[] = {{2, 5, 3, {3}},         {2, 3, 5, {16, 32}},      {1, 4, 4, {1, 1, 1}},
                                {2, 3, 3, {7, 16, 20}}, {3, 1, 1, {5, 8, 17, 2}}, {2, 2, 2, {1, 2, 3, 4, 5, 6, 7}},
                                {2, 2, 3, {24, 8, 8}},  {2, 14, 14, {32, 16, 20}}};
  for (const ConcatDims& d : concats) specs.push_back({OpKind::concat, dtype, d, {}});
  const SliceDims slices[] = {{2, 5, 3, 3, 1, 3},    {1, 1, 4, 4, 0, 1},     {2, 48, 3, 5, 16, 32},
                              {2, 48, 3, 5, 16, 20}, {2, 33, 2, 2, 5, 17},   {3, 40, 1, 1, 39, 1},
                              {2, 40, 2, 3, 8, 24},  {2, 64, 14, 14, 0, 48}, {3, 7, 1, 1, 2, 4, true}};
  for (const SliceDims& d : slices) specs.push_back({OpKind::slice, dtype, d, {}});
}

void add_lrns(Specs& specs, DType dtype) {
  const LrnDims rows[] = {
      {.N = 2, .C = 17, .H = 5, .W = 3, .size = 5, .alpha = 0.8, .beta = 0.75, .k = 2},
      {.N = 1, .C = 3, .H = 4, .W = 4, .size = 5, .alpha = 1, .beta = 0.75, .k = 1},
      {.N = 2, .C = 16, .H = 7, .W = 5, .size = 4, .alpha = 0.5, .beta = 0.6, .k = 1.5},
      {.N = 3, .C = 32, .H = 1, .W = 1, .size = 3, .alpha = 1, .beta = 1, .k = 1},
      {.N = 1, .C = 1, .H = 3, .W = 2, .size = 1, .alpha = 1, .beta = 0.75, .k = 1},
      {.N = 2, .C = 32, .H = 17, .W = 19, .size = 5},
  };
  for (const LrnDims& d : rows)
    for (OpKind kind : {OpKind::lrn_forward, OpKind::lrn_backward}) specs.push_back({kind, dtype, d, {}});
}

void add_layer_norms(Specs& specs, DType dtype) {
  const LayerNormDims rows[] = {{{3, 17}, 17},          {{1, 1}, 1},     {{2, 5, 33}, 33}, {{2, 3, 4, 5}, 60, .1},
                                {{65, 129}, 129, 1e-3}, {{40, 700}, 700}};
  for (const LayerNormDims& d : rows)
    for (OpKind kind : {OpKind::layer_norm_forward, OpKind::layer_norm_backward}) specs.push_back({kind, dtype, d, {}});
}

void add_value_losses(Specs& specs, DType dtype) {
  for (ValueLoss loss : {ValueLoss::squared, ValueLoss::logistic})
    for (std::int64_t elems : {1, 17, 129})
      for (bool index : {false, true})
        if (loss == ValueLoss::logistic || !index)
          for (OpKind kind : {OpKind::loss_values_forward, OpKind::loss_values_backward})
            specs.push_back({kind, dtype, ValueLossDims{elems, loss, index}, {}});
}

void add_attentions(Specs& specs, DType dtype) {
  const AttentionDims rows[] = {
      {.N = 1, .T = 1, .S = 1, .D = 1},
      {.N = 2, .T = 5, .S = 7, .D = 12, .heads = 3},
      {.N = 3, .T = 9, .S = 9, .D = 16, .heads = 2, .causal = true},
      {.N = 4, .T = 6, .S = 11, .D = 10, .heads = 5, .lengths = true},
      {.N = 3, .T = 17, .S = 17, .D = 33, .heads = 1, .causal = true, .lengths = true},
      {.N = 2, .T = 65, .S = 33, .D = 64, .heads = 4},
  };
  for (const AttentionDims& d : rows)
    for (OpKind kind : {OpKind::attention_forward, OpKind::attention_backward}) specs.push_back({kind, dtype, d, {}});
}

void add_sequence_pools(Specs& specs, DType dtype) {
  for (SequencePool mode : {SequencePool::sum, SequencePool::mean, SequencePool::last})
    for (const SequencePoolDims& d : {SequencePoolDims{1, 1, 1, mode}, SequencePoolDims{3, 7, 17, mode, true},
                                      SequencePoolDims{2, 33, 5, mode}, SequencePoolDims{9, 20, 129, mode, true}})
      for (OpKind kind : {OpKind::sequence_pool_forward, OpKind::sequence_pool_backward})
        specs.push_back({kind, dtype, d, {}});
}

void add_broadcasts(Specs& specs, DType dtype) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 5, 7}, Shape{9, 300}, Shape{2, 33, 70}})
    for (OpKind kind : {OpKind::broadcast_add, OpKind::sum_samples})
      specs.push_back({kind, dtype, BroadcastDims{shape}, {}});
}

void add_rnns(Specs& specs, DType dtype) {
  const RnnDims rows[] = {
      {.N = 1, .T = 1, .F = 1, .H = 1},
      {.N = 3, .T = 5, .F = 7, .H = 9, .initial = true, .dhn = true, .dcn = true},
      {.N = 2, .T = 6, .F = 17, .H = 16, .reverse = true, .dy = false, .dhn = true},
      {.N = 5, .T = 4, .F = 3, .H = 33, .initial = true, .lengths = true, .dhn = true, .dcn = true},
      {.N = 4, .T = 7, .F = 8, .H = 11, .reverse = true, .initial = true, .lengths = true, .dcn = true},
      {.N = 9, .T = 3, .F = 65, .H = 40, .lengths = true},
      {.N = 31, .T = 3, .F = 5, .H = 70, .initial = true},
  };
  for (RnnDims d : rows)
    for (Cell cell : {Cell::tanh, Cell::relu, Cell::lstm, Cell::gru}) {
      d.cell = cell;
      d.dcn = d.dcn && d.has_c();
      for (OpKind kind : {OpKind::rnn_forward, OpKind::rnn_backward}) specs.push_back({kind, dtype, d, {}});
    }
}

void add_rnn_steps(Specs& specs, DType dtype) {
  const RnnStepDims rows[] = {
      {.N = 1, .T = 1, .H = 1, .U = 1},
      {.N = 3, .T = 4, .H = 9, .U = 4, .begin = 5, .t = 2, .dy = false},
      {.N = 5, .T = 3, .H = 33, .U = 33, .t = 1, .lengths = true},
      {.N = 9, .T = 5, .H = 70, .U = 23, .begin = 17, .t = 4, .lengths = true, .first = 3},
      {.N = 20, .T = 2, .H = 65, .U = 40, .begin = 25},
  };
  for (RnnStepDims d : rows)
    for (Cell cell : {Cell::tanh, Cell::relu, Cell::lstm, Cell::gru}) {
      d.cell = cell;
      for (OpKind kind : {OpKind::rnn_step_forward, OpKind::rnn_step_backward}) specs.push_back({kind, dtype, d, {}});
    }
  for (const PlaceStepDims& d : {PlaceStepDims{1, 1, 1, 0}, PlaceStepDims{4, 3, 17, 1}, PlaceStepDims{9, 5, 8, 4, true},
                                 PlaceStepDims{7, 4, 33, 0, true, 2}})
    specs.push_back({OpKind::place_step, dtype, d, {}});
}

void add_embeddings(Specs& specs, DType dtype) {
  for (const EmbeddingDims& d : {EmbeddingDims{1, 1, 1}, EmbeddingDims{40, 7, 17}, EmbeddingDims{5, 300, 8},
                                 EmbeddingDims{200, 65, 64}, EmbeddingDims{1500, 3, 9}})
    for (OpKind kind : {OpKind::embedding_forward, OpKind::embedding_backward}) specs.push_back({kind, dtype, d, {}});
  for (EmbeddingDims d : {EmbeddingDims{1, 1, 1}, EmbeddingDims{40, 7, 17}, EmbeddingDims{5, 300, 8},
                          EmbeddingDims{70, 64, 3}, EmbeddingDims{3, 31, 2}}) {
    d.sparse = true;
    specs.push_back({OpKind::embedding_backward, dtype, d, {}});
    d.first = 5;  // some ids are of no row here
    specs.push_back({OpKind::embedding_backward, dtype, d, {}});
    d.sparse = false;
    for (OpKind kind : {OpKind::embedding_forward, OpKind::embedding_backward}) specs.push_back({kind, dtype, d, {}});
  }
}

void add_elementwise(Specs& specs, DType dtype) {
  for (const Shape& shape : {Shape{2, 17, 5, 3}, Shape{1, 1, 4, 4}, Shape{3, 16, 2, 2}, Shape{2, 3, 7, 5}})
    specs.insert(specs.end(),
                 {{OpKind::add, dtype, ElementwiseDims{shape}, {}}, {OpKind::reorder, dtype, ReorderDims{shape}, {}}});
  for (const Shape& shape : {Shape{3, 7}, Shape{1}}) specs.push_back({OpKind::add, dtype, ElementwiseDims{shape}, {}});
  if (!is_half(dtype)) return;
  for (const Shape& shape : {Shape{2, 17, 5, 3}, Shape{3, 7}, Shape{4, 16, 3, 3}})
    specs.insert(specs.end(), {{OpKind::reorder, dtype, ReorderDims{shape, DType::f32}, {}},
                               {OpKind::reorder, DType::f32, ReorderDims{shape, dtype}, {}}});
}

}  // namespace

std::vector<OpSpec> chunk_specs(DType dtype) {
  Specs specs;
  for (Cell cell : {Cell::tanh, Cell::relu, Cell::lstm, Cell::gru})
    for (const std::int64_t first : {std::int64_t{1}, std::int64_t{4}}) {
      RnnDims d{.N = 9, .T = 3, .F = 6, .H = 17, .cell = cell, .initial = true, .lengths = true, .first = first};
      d.dhn = true, d.dcn = d.has_c();
      for (OpKind kind : {OpKind::rnn_forward, OpKind::rnn_backward}) specs.push_back({kind, dtype, d, {}});
    }
  return specs;
}

std::vector<OpSpec> contract_specs(DType dtype) {
  Specs specs;
  add_convolutions(specs, dtype);
  add_pools(specs, dtype);
  add_dense(specs, dtype);
  add_activations(specs, dtype);
  add_norms(specs, dtype);
  add_losses(specs, dtype);
  add_softmax_parts(specs, dtype);
  add_dropouts(specs, dtype);
  add_channels(specs, dtype);
  add_lrns(specs, dtype);
  add_layer_norms(specs, dtype);
  add_value_losses(specs, dtype);
  add_attentions(specs, dtype);
  add_sequence_pools(specs, dtype);
  add_broadcasts(specs, dtype);
  add_rnns(specs, dtype);
  add_rnn_steps(specs, dtype);
  add_embeddings(specs, dtype);
  add_elementwise(specs, dtype);
  return specs;
}

std::vector<std::string> kinds_without_spec(const std::vector<OpSpec>& specs) {
  std::vector<std::string> missing;
  for (OpKind kind : all_op_kinds())
    if (std::none_of(specs.begin(), specs.end(), [&](const OpSpec& spec) { return spec.kind == kind; }))
      missing.emplace_back(name_of(kind));
  return missing;
}

}  // namespace echelon::test
