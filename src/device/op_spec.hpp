// What an op computes: a kind, a dtype, extents, and the layouts of its activations. A plain value, known before any
// memory.
//
// A spec is all that a device needs to build an op (Device::make), and `signature(spec)` is all that a caller or a test
// needs to feed it: the name, shape, dtype and direction of each argument, in order. The contract suite builds random
// arguments from the signature alone, so a new kind is tested on every device as soon as `reference` has it.
//
// Conventions that hold for every kind
//   * All extents are those of one micro-batch on one rank. N may be 0 nowhere.
//   * Gradients are sums over samples (never means); the factor 1/W enters once, in the loss's backward (`scale`).
//   * An output marked `adds` is overwritten, or added to when its bit in OpArgs::accumulate is set. Every body honours
//     both.
//   * The output of an activation, an add or loss_softmax_backward may be the very memory of one of its inputs of the
//     same shape, where it does not add.
//   * An output `in_part` keeps its content but for the step of a sequence that the op writes.
//   * `saved` is memory of the body's own format that a forward op leaves for its backward twin on the same device (the
//     positions of a max pool, a library's workspace); `scratch` lives for one call and is shared by all ops of a
//     program.
//
// clang-format off
// Kinds                        inputs                       outputs                                        scalars
//   conv_forward               x w [b]                      y
//   conv_backward_data         dy w                         dx (adds)
//   conv_backward_weights      x dy                         dw (adds) [db (adds)]
//   pool_forward               x                            y (+ saved)
//   pool_backward              dy (+ saved)                 dx (adds)
//   dense_forward              x w [b]                      y
//   dense_backward_data        dy w                         dx (adds)
//   dense_backward_weights     x dy                         dw (adds) [db (adds)]
//   activation_forward         x                            y
//   activation_backward        y dy                         dx (adds)
//   norm_moments               x                            sums(2, C) f64: sum x, sum x^2
//   norm_normalise             x gamma beta sums            y stats(2, C) f64: mean, 1/std                 count
//   norm_backward_sums         x dy stats [gamma beta]      sums(2, C) f64: sum dy, sum dy*xhat;
//                                                           dgamma (adds) dbeta (adds)
//   norm_backward_apply        x dy stats gamma [beta] sums dx (adds)                                      count
//   norm_local_forward         x gamma beta                 y stats       (moments + normalise over this micro-batch)
//   norm_local_backward        x dy stats gamma [beta]      dx (adds) dgamma (adds) dbeta (adds)
//   norm_statistics            stats                        dmean (adds) dvar (adds)                       scale, count
//   norm_inference             x gamma beta mean var        y
//   norm_renorm                sums gamma beta mean var     gamma2 beta2 correction(2, C): r, d                 count
//   norm_renorm_backward       dgamma2 dbeta2 correction    dgamma (adds) dbeta (adds)
//   loss_softmax_forward       logits labels weights        probs sums(3) f64 (adds): loss, correct, weight
//   loss_softmax_backward      probs labels weights         dlogits (adds)                                 scale
//   loss_softmax_part          logits labels                partials(N, 4)
//   loss_softmax_join          partials(N, 4*parts) weights     norms(N) sums(3) f64 (adds): loss, correct, weight
//   loss_softmax_part_backward logits norms labels weights  dlogits (adds)                                 scale
//   dropout                    x ids(N) i32                 y (adds)                                       key
//   concat                     x0 .. xn (channels)          y
//   slice                      x                            y (adds): channels [first, first + count) of x; with
//                                                           `indices` both i32, and y does not add
//   lrn_forward                x                            y
//   lrn_backward               x dy                         dx (adds)
//   layer_norm_forward         x gamma(F) beta(F)           y stats(2, rows) f64: mean, 1/std
//   layer_norm_backward        x dy stats gamma             dx (adds) dgamma (adds) dbeta (adds)
//   loss_values_forward        x targets(E) weights(E)      sums(3) f64 (adds): loss, correct, weight
//   loss_values_backward       x targets weights            dx (adds)                                      scale
//   attention_forward          q(N,T,D) k(N,S,D) v(N,S,D) [lengths(N) i32]   y(N,T,D) (+ saved)
//   attention_backward         q k v [lengths] dy (+ saved) dq (adds) dk (adds) dv (adds)
//   sequence_pool_forward      x(N,T,F) [lengths(N) i32]    y(N,F)
//   sequence_pool_backward     dy [lengths]                 dx (adds)
//   broadcast_add              x(N, ..) w(..)               y
//   sum_samples                dy(N, ..)                    dw(..) (adds)
//   rnn_forward                x weight_x weight_h bias_x bias_h [h0 [c0]] [lengths]
//                                                           y hn [cn] (+ saved)
//   rnn_backward               x weight_x weight_h bias_x bias_h [h0 [c0]] [lengths] y [dy] [dhn] [dcn] (+ saved)
//                                                           dx dweight_x dweight_h dbias_x dbias_h [dh0 [dc0]]
//                                                           (all add)
//   rnn_step_forward           a(N,T,G*U) weight_h(G*U,H) bias_h h(N,H) [c(N,U)] [lengths]
//                                                           h_next(N,U) [c_next(N,U)] gates(N,T,P*U) (in part)
//   rnn_step_backward          weight_h gates [hs(N,T,H)] [c c_next dc_next (N,U)] [lengths] [dy(N,T,H)] dh_next(N,H)
//                                                           da(N,T,G*U) (in part) [db(N,T,G*U) (in part)] dh(N,H)
//                                                           [dc(N,U)]
//   place_step                 x(N,F) [lengths]             y(N,T,F) (in part): step t of y, 0 at t >= length
//   embedding_forward          ids w                        y
//   embedding_backward         ids dy                       dw (adds) [touched (adds)]
//   add                        a b                          y
//   reorder                    x                            y (the same values in another layout or dtype)
//
// Definitions
//   conv      cross-correlation, zero padding;
//             y[n,k,p,q] = b[k] + sum_{c,r,s} x[n, c, p*stride - pad + r*dil, ..] w[k,c,r,s]
//   pool      max ignores padding; average divides by the window's cells inside the image (PoolMode::average_inside)
//             or by R*S (average_all). Of equal maxima the first in row-major order takes the gradient. With `relu`,
//             y = max(0, that), which is the max pool of ReLUs, and where y = 0 nothing takes the gradient.
//   norm      xhat = (x - mean) * istd, istd = 1/sqrt(var + epsilon), var biased (1/count), count = N*H*W of the group
//             (all members); y = gamma*xhat + beta.
//             backward: dx = gamma*istd*(dy - sums[0]/count - xhat*sums[1]/count).
//             norm_statistics: dmean += scale*mean, dvar += scale*var*count/max(1,count-1) (unbiased): the step's share
//             of the running statistics, which are parameters of kind `statistic` (device/parameter.hpp).
//             Ioffe, Szegedy 2015. With `relu`, y = max(0, that) and dy counts where y > 0, told from x again: beta is
//             then an argument of the backward ops.
//   renorm    normalising by the running mean and variance m, v in training: y = gamma*(xhat*r + d) + beta with
//             r = std/std_v within [1/r_max, r_max], d = (mean - m)/std_v within [-d_max, d_max], both constants to the
//             gradient. It is batch norm with gamma2 = gamma*r and beta2 = beta + gamma*d, whose gradients give
//             dgamma = r*dgamma2 + d*dbeta2, dbeta = dbeta2. Ioffe 2017.
//   gelu      x Phi(x) with the exact error function; its activation_backward reads x, not y. Hendrycks, Gimpel 2016.
//   dropout   y = x / (1 - rate) where HashRng(key).at(ids[n]).uniform(i) >= rate, else 0; i counts the whole sample's
//             elements as they lie plain, ids are the samples' numbers in the whole data set (their low 32 bits). Linear in x, so
//             its backward is the same op on dy. key is a hash of (seed, node, step): no place in a batch enters.
//   lrn       y = x s^-beta, s = k + alpha/size * sum of x^2 over the channels [c - size/2, c + (size-1)/2] there are.
//             Krizhevsky et al. 2012, alpha as PyTorch means it.
//   layer_norm  over rows of F values each, var biased: y = gamma*xhat + beta. Ba et al. 2016.
//   rnn       one layer, one direction, one chunk of time; x (N, T, F), y (N, T, H), states (N, H), weight_x (G*H, F),
//             weight_h (G*H, H), biases (G*H), lengths (N) i32 in [0, T]. With a = weight_x x_t + bias_x, b = weight_h h +
//             bias_h in G parts, h the state before:
//               tanh, relu  G = 1            h' = f(a + b)
//               lstm        G = 4: i f g o   c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c')
//               gru         G = 3: r z n     r, z = sigmoid(a + b), n = tanh(a_n + r b_n), h' = (1 - z) n + z h
//             as PyTorch and cuDNN define them. At t >= length the state stays and y_t = 0; `reverse` runs from the
//             last step to the first. y_t = h'; hn, cn are the last states. Where h0, c0 are not given they are 0, as are
//             dy, dhn, dcn. x may begin with step `first` of a longer sequence: lengths are those of the whole, and the
//             state stays at first + t >= length. Hochreiter, Schmidhuber 1997 (with Gers' forget gate); Cho et al. 2014.
//   rnn_step  step t of the units [begin, begin + U) of an rnn, from the whole state h before it and a = weight_x x +
//             bias_x of all steps: h_next, c_next are these units'. `gates`, for backward: i f g o, or r z n b_n, after
//             their functions, or h'; 0 where the state stays. Backward: dh_next is the gradient of the whole state after the step; da, db those
//             of a, b (db for gru alone, else it is da; likewise hs, the states before every step); dh is what these
//             units give back to the state before, to be summed over all units.
//   embedding y[r] = w[ids[r] - first], 0 where that is no row here, of a table of which others have the other rows; an
//             id of no row anywhere is the loader's to refuse. With `sparse`, `touched` has a bit for each
//             row of the table (device/row_bits.hpp), set where dw may hold anything but zero. Overwriting clears the
//             rows that are marked, no others, and marks those of ids; adding marks these too. dw and touched are both
//             overwritten or both added to.
//   softmax   loss_n = weight_n * sum_k target_k * (logsumexp(logits_n) - logits_n[k]), target = (1 - smoothing) at the
//             label and smoothing/K everywhere besides (Szegedy et al. 2015); correct counts weight_n where the first
//             maximum is the label; dlogits = scale * weight_n * (probs - target). A label outside [0, K) is the
//             loader's to refuse.
//
//   softmax of parts  logits are the classes [first, first + K) of `classes`. Partials of a label: the largest logit here;
//             whether the label is the first such; the sum of exp(logit - that); the sum of target * logit here. Of all
//             `parts` in order: norm = logsumexp of all logits, so that loss, correct and, from exp(logit - norm), the
//             gradient are those of the whole softmax (Shoeybi et al. 2019).
//   values    squared: loss_e = weight_e * (x_e - t_e)^2, correct 0; logistic: x are logits,
//             loss_e = weight_e * (max(x,0) - x t + log(1 + exp(-|x|))), correct where x > 0 and t > 1/2 agree. targets
//             are real, or indices (0 and 1) with `index_targets`.
//   attention heads of D/heads features each: y = softmax(q k^T / sqrt(D/heads)) v; places s >= length, and s > t where
//             `causal` (T = S), take no part. Vaswani et al. 2017.
//   sequence_pool  sum or mean over the places t < length; the last one: y = x[length - 1].
//
// Shapes and types where the table is silent: w (K, C/groups, R, S) or (K, F); gamma, beta, mean, var, their gradients
// and b (C) or (K); labels (N) i32; weights (N) in the spec's dtype; everything else in the spec's dtype.
//
// Mixed precision: in a spec of f16 or bf16 parameters and the gradients of parameters are f32, activations and their
// gradients are halves; what is summed is summed in f32 or f64. A device says which kinds it has so (Device::has).
// clang-format on
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "device/arg_info.hpp"
#include "device/layout.hpp"
#include "device/op_dims.hpp"

namespace echelon::inline device {

// clang-format off
#define ECHELON_OP_KINDS(X)                                                          \
  X(conv_forward) X(conv_backward_data) X(conv_backward_weights)                     \
  X(pool_forward) X(pool_backward)                                                   \
  X(dense_forward) X(dense_backward_data) X(dense_backward_weights)                  \
  X(activation_forward) X(activation_backward)                                       \
  X(norm_moments) X(norm_normalise) X(norm_backward_sums) X(norm_backward_apply)     \
  X(norm_local_forward) X(norm_local_backward) X(norm_statistics) X(norm_inference)  \
  X(norm_renorm) X(norm_renorm_backward)                                             \
  X(loss_softmax_forward) X(loss_softmax_backward)                                   \
  X(loss_softmax_part) X(loss_softmax_join) X(loss_softmax_part_backward)            \
  X(dropout) X(concat) X(slice) X(lrn_forward) X(lrn_backward)                       \
  X(layer_norm_forward) X(layer_norm_backward)                                       \
  X(loss_values_forward) X(loss_values_backward)                                     \
  X(attention_forward) X(attention_backward)                                         \
  X(sequence_pool_forward) X(sequence_pool_backward)                                 \
  X(broadcast_add) X(sum_samples)                                                    \
  X(rnn_forward) X(rnn_backward) X(rnn_step_forward) X(rnn_step_backward)            \
  X(place_step) X(embedding_forward) X(embedding_backward)                           \
  X(add) X(reorder)
// clang-format on

enum class OpKind : std::uint8_t {
#define X(kind) kind,
  ECHELON_OP_KINDS(X)
#undef X
};

std::string_view name_of(OpKind kind);
std::vector<OpKind> all_op_kinds();

// How many tensor arguments an op has at most, inputs and outputs together.
inline constexpr int kMaxArgs = 20;

struct OpSpec {
  OpKind kind;
  DType dtype = DType::f32;  // f32, f64; f16 and bf16 where the device has them
  Dims dims;
  std::array<Layout, kMaxArgs> layouts{};  // by argument; other than plain only where ArgInfo::movable

  // "conv_forward f32 N64 C1 H28 W28 K32 3x3 pad 1": kind and extents; layouts only for a reorder, whose work they are.
  std::string text() const;
  friend bool operator==(const OpSpec&, const OpSpec&) = default;
};

// Arguments in order, inputs first. Throws Error (a defect) for dims that no op has (a window larger than its image).
std::vector<ArgInfo> signature(const OpSpec& spec);

// Floating-point operations of one run, by formula: 2 * multiply-adds; elementwise kinds count one an element.
double flops(const OpSpec& spec);
// Bytes read and written once each, by formula.
double traffic_bytes(const OpSpec& spec);

}  // namespace echelon::inline device
