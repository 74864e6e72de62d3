// SPDX-License-Identifier: Apache-2.0
// Every family of ops: the name of its file and of its makers (make_conv on every device), its dims, its kinds. To add
// one, write device/ops/<family>.hpp, an implementation on every device, and a line here.
//
// The dims of a family have `common(op)` and a function for each kind, by the kind's name, which describe the op
// (device/op_description.hpp), and optionally `kInHalves` (computes_in_halves in op_spec.hpp).
//
// Code that expands the list defines F(family, dims, kinds) and X(kind).
#pragma once

#include "device/ops/activation.hpp"
#include "device/ops/add.hpp"
#include "device/ops/attention.hpp"
#include "device/ops/broadcast.hpp"
#include "device/ops/class_loss.hpp"
#include "device/ops/concat.hpp"
#include "device/ops/conv.hpp"
#include "device/ops/dense.hpp"
#include "device/ops/dropout.hpp"
#include "device/ops/embedding.hpp"
#include "device/ops/layer_norm.hpp"
#include "device/ops/lrn.hpp"
#include "device/ops/norm.hpp"
#include "device/ops/place_step.hpp"
#include "device/ops/pool.hpp"
#include "device/ops/reorder.hpp"
#include "device/ops/rnn.hpp"
#include "device/ops/rnn_step.hpp"
#include "device/ops/sequence_pool.hpp"
#include "device/ops/slice.hpp"
#include "device/ops/softmax.hpp"
#include "device/ops/softmax_part.hpp"
#include "device/ops/upsample.hpp"
#include "device/ops/value_loss.hpp"

// clang-format off
#define ECHELON_OP_FAMILIES(F)                                                                                     \
  F(conv,          ConvDims,         X(conv_forward) X(conv_backward_data) X(conv_backward_weights))               \
  F(pool,          PoolDims,         X(pool_forward) X(pool_backward))                                             \
  F(upsample,      UpsampleDims,     X(upsample_forward) X(upsample_backward))                                     \
  F(dense,         DenseDims,        X(dense_forward) X(dense_backward_data) X(dense_backward_weights))            \
  F(activation,    ActivationDims,   X(activation_forward) X(activation_backward))                                 \
  F(norm,          NormDims,         X(norm_moments) X(norm_normalise) X(norm_backward_sums) X(norm_backward_apply) \
                                     X(norm_local_forward) X(norm_local_backward) X(norm_statistics)               \
                                     X(norm_inference) X(norm_renorm) X(norm_renorm_backward))                     \
  F(softmax,       SoftmaxDims,      X(loss_softmax_forward) X(loss_softmax_backward))                             \
  F(softmax_part,  SoftmaxPartDims,  X(loss_softmax_part) X(loss_softmax_join) X(loss_softmax_part_backward))      \
  F(class_loss,    ClassLossDims,    X(loss_class_forward) X(loss_class_join) X(loss_class_backward))               \
  F(dropout,       DropoutDims,      X(dropout))                                                                   \
  F(concat,        ConcatDims,       X(concat))                                                                    \
  F(slice,         SliceDims,        X(slice))                                                                     \
  F(lrn,           LrnDims,          X(lrn_forward) X(lrn_backward))                                               \
  F(layer_norm,    LayerNormDims,    X(layer_norm_forward) X(layer_norm_backward))                                 \
  F(value_loss,    ValueLossDims,    X(loss_values_forward) X(loss_values_backward))                               \
  F(attention,     AttentionDims,    X(attention_forward) X(attention_backward))                                   \
  F(sequence_pool, SequencePoolDims, X(sequence_pool_forward) X(sequence_pool_backward))                           \
  F(broadcast,     BroadcastDims,    X(broadcast_add) X(sum_samples))                                              \
  F(rnn,           RnnDims,          X(rnn_forward) X(rnn_backward))                                               \
  F(rnn_step,      RnnStepDims,      X(rnn_step_forward) X(rnn_step_backward))                                     \
  F(place_step,    PlaceStepDims,    X(place_step))                                                                \
  F(embedding,     EmbeddingDims,    X(embedding_forward) X(embedding_backward))                                   \
  F(add,           ElementwiseDims,  X(add) X(masked_add))                                                         \
  F(reorder,       ReorderDims,      X(reorder))
// clang-format on
