// SPDX-License-Identifier: Apache-2.0
// Adds one tensor to every sample; its gradient is the sum over samples.
#include <algorithm>

#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"

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
    forward_ ? add(first, static_cast<const float*>(args.tensors[1]), static_cast<T*>(args.tensors[2]))
             : sum(first, (args.accumulate & 2U) != 0, static_cast<float*>(args.tensors[1]));
  }

 protected:
  bool worth_a_team() const { return threads_ > 1 && N_ * elems_ >= kParallelElems; }

  std::int64_t N_, elems_;
  int threads_;

 private:
  virtual void add(const T* x, const float* w, T* y) const = 0;
  virtual void sum(const T* dy, bool add_to, float* dw) const = 0;

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
  void add(const T* x, const float* w, T* y) const override {
#pragma omp parallel for num_threads(threads_) if (worth_a_team())
    for (std::int64_t n = 0; n < N_; ++n)
      for (std::int64_t e = 0; e < elems_; ++e) y[n * elems_ + e] = rounded_to<T>(widened(x[n * elems_ + e]) + w[e]);
  }

  // Each thread takes some columns and sums over all rows, so that the order of the sum does not depend on threads.
  void sum(const T* dy, bool add_to, float* dw) const override {
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

// One number for each channel of plain images.
template <class T>
class ChannelBroadcast final : public BroadcastOp<T> {
  using Base = BroadcastOp<T>;
  using Base::N_, Base::threads_, Base::worth_a_team;

 public:
  ChannelBroadcast(const Context& context, const OpSpec& spec)
      : Base(context, spec),
        C_(std::get<BroadcastDims>(spec.dims).shape[1]),
        cells_(std::get<BroadcastDims>(spec.dims).cells()) {}

 private:
  void add(const T* x, const float* w, T* y) const override {
#pragma omp parallel for num_threads(threads_) if (worth_a_team())
    for (std::int64_t nc = 0; nc < N_ * C_; ++nc)
      for (std::int64_t i = 0; i < cells_; ++i)
        y[nc * cells_ + i] = rounded_to<T>(widened(x[nc * cells_ + i]) + w[nc % C_]);
  }

  void sum(const T* dy, bool add_to, float* dw) const override {
#pragma omp parallel for num_threads(threads_) if (worth_a_team())
    for (std::int64_t c = 0; c < C_; ++c) {
      double total = 0;
      for (std::int64_t n = 0; n < N_; ++n)
        for (std::int64_t i = 0; i < cells_; ++i) total += static_cast<double>(widened(dy[(n * C_ + c) * cells_ + i]));
      dw[c] = (add_to ? dw[c] : 0.0f) + static_cast<float>(total);
    }
  }

  std::int64_t C_, cells_;
};

}  // namespace

std::unique_ptr<Op> make_broadcast(Context& context, const OpSpec& spec) {
  if (std::get<BroadcastDims>(spec.dims).channels) return make_stored<ChannelBroadcast>(spec.dtype, context, spec);
  return make_stored<RowBroadcast>(spec.dtype, context, spec);
}

}  // namespace echelon::inline device::onednn
