// SPDX-License-Identifier: Apache-2.0
// Adds one tensor to every sample; its gradient is the sum over samples.
#include <algorithm>

#include "device/onednn/channel_loops.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/primitive.hpp"

namespace echelon::inline device::onednn {
namespace {

// T is the type of activations and their gradients, float or BHalf.
template <class T>
class BroadcastOp : public Op {
 public:
  BroadcastOp(const Context& context, const OpSpec& spec)
      : N_(std::get<BroadcastDims>(spec.dims).shape[0]),
        elems_(std::get<BroadcastDims>(spec.dims).shape.row_elems()),
        threads_(context.threads),
        forward_(spec.kind == OpKind::broadcast_add) {}
  std::string implementation() const final { return "own loop"; }

  void run(const OpArgs& args) final {
    const auto* first = static_cast<const T*>(args.tensors[0]);
    std::byte* scratch = ScratchPlan::align(args.scratch);
    forward_ ? add(first, static_cast<const float*>(args.tensors[1]), static_cast<T*>(args.tensors[2]), scratch)
             : sum(first, (args.accumulate & 2U) != 0, static_cast<float*>(args.tensors[1]), scratch);
  }

 protected:
  bool worth_a_team() const { return threads_ > 1 && N_ * elems_ >= kParallelElems; }

  std::int64_t N_, elems_;
  int threads_;

 private:
  virtual void add(const T* x, const float* w, T* y, std::byte* scratch) const = 0;
  virtual void sum(const T* dy, bool add_to, float* dw, std::byte* scratch) const = 0;

  bool forward_;
};

// A number for each element of a row.
template <class T>
class RowBroadcast final : public BroadcastOp<T> {
  using Base = BroadcastOp<T>;
  using Base::elems_, Base::N_, Base::threads_, Base::worth_a_team;

 public:
  using Base::Base;

 private:
  void add(const T* x, const float* w, T* y, std::byte*) const override {
#pragma omp parallel for num_threads(threads_) if (worth_a_team())
    for (std::int64_t n = 0; n < N_; ++n)
      for (std::int64_t e = 0; e < elems_; ++e) y[n * elems_ + e] = rounded_to<T>(widened(x[n * elems_ + e]) + w[e]);
  }

  // Each thread takes some columns and sums over all rows, so that the order of the sum does not depend on threads.
  void sum(const T* dy, bool add_to, float* dw, std::byte*) const override {
    constexpr std::int64_t kColumns = 256;
#pragma omp parallel for num_threads(threads_) if (worth_a_team())
    for (std::int64_t begin = 0; begin < elems_; begin += kColumns) {
      const std::int64_t end = std::min(begin + kColumns, elems_);
      if (!add_to) std::fill(dw + begin, dw + end, 0.0f);
      for (std::int64_t n = 0; n < N_; ++n)
        for (std::int64_t e = begin; e < end; ++e) dw[e] += widened(dy[n * elems_ + e]);
    }
  }
};

template <class T>
struct AddToChannel {
  const T* x;
  const float* w;
  T* y;
  AddToChannel at(std::int64_t c, std::int64_t start) const { return {x + start, w + c, y + start}; }
  template <class L, bool kOneChannel>
  void operator()(std::int64_t i, int lane) const {
    L::store(y + i, L::load(x + i) + of_channels<L, kOneChannel>(w + lane));
  }
};

// The first of the two sums; the second stays 0.
template <class T>
struct SumOfChannel {
  static constexpr bool kInRuns = std::is_same_v<T, BHalf>;
  const T* dy;
  SumOfChannel at(std::int64_t, std::int64_t start) const { return {dy + start}; }
  template <class L, bool kOneChannel, class Sums>
  void operator()(std::int64_t i, int, Sums& sum, Sums&) const {
    if constexpr (kInRuns && !kOneChannel)
      sum += L::load(dy + i);
    else
      sum += L::widen(L::load(dy + i));
  }
};

// A number for each channel, in any layout.
template <class T>
class ChannelBroadcast final : public BroadcastOp<T> {
  using Base = BroadcastOp<T>;
  using Base::N_, Base::threads_;

 public:
  ChannelBroadcast(const Context& context, const OpSpec& spec)
      : Base(context, spec),
        C_(std::get<BroadcastDims>(spec.dims).shape[1]),
        cells_(std::get<BroadcastDims>(spec.dims).cells()),
        planes_(C_, spec.layouts[0]),
        sums_(N_, C_, cells_, planes_, threads_),
        values_(plan_.take(static_cast<std::size_t>(C_ + kMaxLanes) * sizeof(double) * 2)),
        partial_(plan_.take(sums_.scratch_bytes())) {}
  std::size_t scratch_bytes() const override { return plan_.bytes(); }

 private:
  void add(const T* x, const float* w, T* y, std::byte* scratch) const override {
    auto* padded = reinterpret_cast<float*>(scratch + values_);  // the last block has lanes without a channel
    std::fill(std::copy_n(w, C_, padded), padded + C_ + kMaxLanes, 0.0f);
    walk(threads_, N_, C_, cells_, planes_, AddToChannel<T>{x, padded, y});
  }

  void sum(const T* dy, bool add_to, float* dw, std::byte* scratch) const override {
    auto* sums = reinterpret_cast<double*>(scratch + values_);
    sums_.run(sums, reinterpret_cast<double*>(scratch + partial_), SumOfChannel<T>{dy});
    for (std::int64_t c = 0; c < C_; ++c) dw[c] = (add_to ? dw[c] : 0.0f) + static_cast<float>(sums[c]);
  }

  std::int64_t C_, cells_;
  Planes planes_;
  ChannelSums sums_;
  ScratchPlan plan_;
  std::size_t values_, partial_;
};

}  // namespace

std::unique_ptr<Op> make_broadcast(Context& context, const OpSpec& spec) {
  if (std::get<BroadcastDims>(spec.dims).channels) return make_stored<ChannelBroadcast>(spec.dtype, context, spec);
  return make_stored<RowBroadcast>(spec.dtype, context, spec);
}

}  // namespace echelon::inline device::onednn
