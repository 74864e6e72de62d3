// The extents of every kind of op, one struct for kinds that share them. What they mean is in op_spec.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace echelon::inline device {

struct ConvDims {
  std::int64_t N, C, H, W, K, R, S;
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1, dil_w = 1, groups = 1;
  bool bias = true;
  std::int64_t P() const;
  std::int64_t Q() const;
  friend bool operator==(const ConvDims&, const ConvDims&) = default;
};

enum class PoolMode : std::uint8_t { max, average_inside, average_all };
struct PoolDims {
  std::int64_t N, C, H, W, R, S;
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  PoolMode mode = PoolMode::max;
  bool relu = false;            // of a max pool
  std::int64_t more_below = 0;  // rows of padding below the image beyond pad_h; below 0: fewer
  std::int64_t P() const;
  std::int64_t Q() const;
  friend bool operator==(const PoolDims&, const PoolDims&) = default;
};

struct DenseDims {
  std::int64_t N, F, K;
  bool bias = true;
  friend bool operator==(const DenseDims&, const DenseDims&) = default;
};

enum class Activation : std::uint8_t { relu, tanh, sigmoid, gelu };
struct ActivationDims {
  Shape shape;
  Activation function = Activation::relu;
  friend bool operator==(const ActivationDims&, const ActivationDims&) = default;
};

struct NormDims {
  std::int64_t N, C, H, W;
  double epsilon = 1e-5;
  bool relu = false;
  double r_max = 1, d_max = 0;  // renorm
  friend bool operator==(const NormDims&, const NormDims&) = default;
};

struct SoftmaxDims {
  std::int64_t N, K;
  double smoothing = 0;  // of the target, in [0, 1)
  friend bool operator==(const SoftmaxDims&, const SoftmaxDims&) = default;
};

struct SoftmaxPartDims {
  static constexpr std::int64_t kPartials = 4;  // numbers a label
  std::int64_t N, K, first, classes, parts;
  double smoothing = 0;
  friend bool operator==(const SoftmaxPartDims&, const SoftmaxPartDims&) = default;
};

struct DropoutDims {
  Shape shape;             // N in front
  double rate;             // of zeros, in [0, 1)
  std::int64_t first = 0;  // of the whole sample's elements: the first of these
  std::int64_t plane = 0;  // elements of the whole sample from one of its channels to the next; 0: as many as here
  // Elements of `shape` that follow one another in the whole sample: all, or a channel's.
  std::int64_t run() const { return plane == 0 ? shape.row_elems() : shape.row_elems() / shape[1]; }
  friend bool operator==(const DropoutDims&, const DropoutDims&) = default;
};

// How many inputs one concat joins.
inline constexpr int kMaxConcat = 7;

struct ConcatDims {
  std::int64_t N, H, W;
  std::array<std::int64_t, kMaxConcat> channels;  // of each input; 0 behind the last
  int inputs() const;
  std::int64_t C() const;  // of the output
  friend bool operator==(const ConcatDims&, const ConcatDims&) = default;
};

struct SliceDims {
  std::int64_t N, C, H, W, first, count;
  bool indices = false;
  friend bool operator==(const SliceDims&, const SliceDims&) = default;
};

struct LrnDims {
  std::int64_t N, C, H, W, size;
  double alpha = 1e-4, beta = 0.75, k = 1;
  friend bool operator==(const LrnDims&, const LrnDims&) = default;
};

struct LayerNormDims {
  Shape shape;     // of x
  std::int64_t F;  // values of a row; rows lie one behind the other
  double epsilon = 1e-5;
  std::int64_t rows() const { return shape.elems() / F; }
  friend bool operator==(const LayerNormDims&, const LayerNormDims&) = default;
};

enum class ValueLoss : std::uint8_t { squared, logistic };
struct ValueLossDims {
  std::int64_t elems;
  ValueLoss loss = ValueLoss::squared;
  bool index_targets = false;
  friend bool operator==(const ValueLossDims&, const ValueLossDims&) = default;
};

struct AttentionDims {
  std::int64_t N, T, S, D, heads = 1;
  bool causal = false;
  bool lengths = false;  // of k and v
  std::int64_t head() const { return D / heads; }
  friend bool operator==(const AttentionDims&, const AttentionDims&) = default;
};

enum class SequencePool : std::uint8_t { sum, mean, last };
struct SequencePoolDims {
  std::int64_t N, T, F;
  SequencePool mode = SequencePool::mean;
  bool lengths = false;
  friend bool operator==(const SequencePoolDims&, const SequencePoolDims&) = default;
};

struct BroadcastDims {  // broadcast_add, sum_samples
  Shape shape;          // N in front
  friend bool operator==(const BroadcastDims&, const BroadcastDims&) = default;
};

enum class Cell : std::uint8_t { tanh, relu, lstm, gru };
constexpr std::int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
// What a step keeps of each unit for its backward pass.
constexpr std::int64_t parts_of(Cell cell) { return cell == Cell::lstm || cell == Cell::gru ? 4 : 1; }
struct RnnDims {
  std::int64_t N, T, F, H;
  Cell cell = Cell::lstm;
  bool reverse = false;                      // from the last step to the first
  bool initial = false;                      // h0 [c0] are given
  bool lengths = false;                      // lengths are given; else all are T
  std::int64_t first = 0;                    // step of the whole sequence with which x begins; not with reverse
  bool dy = true, dhn = false, dcn = false;  // backward: which gradients arrive
  std::int64_t G() const { return gates_of(cell); }
  bool has_c() const { return cell == Cell::lstm; }
  friend bool operator==(const RnnDims&, const RnnDims&) = default;
};

struct RnnStepDims {
  std::int64_t N, T, H, U;
  std::int64_t begin = 0, t = 0;
  Cell cell = Cell::lstm;
  bool lengths = false;
  std::int64_t first = 0;  // as RnnDims
  bool dy = true;
  std::int64_t G() const { return gates_of(cell); }
  std::int64_t P() const { return parts_of(cell); }
  bool has_c() const { return cell == Cell::lstm; }
  friend bool operator==(const RnnStepDims&, const RnnStepDims&) = default;
};

struct PlaceStepDims {
  std::int64_t N, T, F, t;
  bool lengths = false;
  std::int64_t first = 0;  // as RnnDims
  friend bool operator==(const PlaceStepDims&, const PlaceStepDims&) = default;
};

struct EmbeddingDims {
  std::int64_t rows, V, F;  // ids; rows of the table; values of a row
  bool sparse = false;      // backward: dw is cleared and marked row by row
  std::int64_t first = 0;   // the id of row 0
  friend bool operator==(const EmbeddingDims&, const EmbeddingDims&) = default;
};

struct ElementwiseDims {  // add
  Shape shape;
  friend bool operator==(const ElementwiseDims&, const ElementwiseDims&) = default;
};

struct ReorderDims {
  Shape shape;
  std::optional<DType> from = {};  // of x, any floating dtype; default: the spec's, which is that of y
  friend bool operator==(const ReorderDims&, const ReorderDims&) = default;
};

using Dims =
    std::variant<ConvDims, PoolDims, DenseDims, ActivationDims, NormDims, SoftmaxDims, SoftmaxPartDims, DropoutDims,
                 ConcatDims, SliceDims, LrnDims, LayerNormDims, ValueLossDims, AttentionDims, SequencePoolDims,
                 BroadcastDims, RnnDims, RnnStepDims, PlaceStepDims, EmbeddingDims, ElementwiseDims, ReorderDims>;

}  // namespace echelon::inline device
