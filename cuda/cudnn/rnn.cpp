// SPDX-License-Identifier: Apache-2.0
// Recurrent layers through cuDNN: one layer, one direction, batch-major padded sequences.
//
// The library is used in one direction only; for `reverse` each sequence is reversed before and after. Its weights are
// in a space of its own format, packed from ours once per parameter version, with halves rounded on the way. The
// library takes lengths from host memory, so a batch of different lengths waits once for the device.
//
// Chunks of longer sequences with lengths are refused: a sample that has ended would have an empty sequence, which the
// library does not accept.
//
// Halves: products are summed in f32 on tensor cores; gates, states and the weights' gradients are stored in halves.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/check.hpp"
#include "base/error.hpp"
#include "cuda/cudnn/rnn_descriptors.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/kernels/recurrent.hpp"
#include "cuda/make.hpp"
#include "device/ops/rnn_args.hpp"

namespace echelon::cuda {
namespace {

// Parts of one piece of memory, each aligned for the library.
class Parts {
 public:
  std::size_t take(std::size_t bytes) {
    const std::size_t at = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kAlignment = 256;
  std::size_t bytes_ = 0;
};

template <class T>
class Rnn : public Op {
 public:
  Rnn(const Context& context, const OpSpec& spec)
      : context_(context),
        d_(std::get<RnnDims>(spec.dims)),
        at_(spec),
        text_(spec.text()),
        library_(context.dnn(), d_, spec.dtype),
        packed_(context.allocate(library_.weight_bytes(), "packed weights of " + text_)),
        parts_(library_.parts(context.dnn(), packed_.data(), sizeof(T))) {
    work_at_ = scratch_.take(library_.work_bytes());
    x_at_ = scratch_.take(elems(d_.T, d_.F) * sizeof(T));
    y_at_ = scratch_.take(elems(d_.T, d_.H) * sizeof(T));
    h0_at_ = scratch_.take(state_bytes());
    c0_at_ = scratch_.take(state_bytes());
    if (d_.lengths && d_.first > 0)
      throw ConfigError(
          fmt::format("device cuda cannot run time chunks of sequences of different lengths ({}); leave out "
                      "parallel.time_chunks",
                      text_));
    if (d_.lengths) lengths_ = make_host_memory(static_cast<std::size_t>(d_.N) * sizeof(int));
  }

  std::size_t saved_bytes() const override { return library_.reserve_bytes(); }
  std::size_t scratch_bytes() const override { return scratch_.bytes(); }
  std::string implementation() const override { return "cudnn rnn, standard algorithm"; }
  // Its run packs weights, waits for lengths, and the library may use further streams.
  bool replays() const override { return false; }

 protected:
  std::size_t elems(std::int64_t steps, std::int64_t values) const {
    return static_cast<std::size_t>(d_.N * steps * values);
  }
  std::size_t state_bytes() const { return elems(1, d_.H) * sizeof(T); }
  T* scratch(const OpArgs& a, std::size_t at) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(a.scratch) + at);
  }

  void take_lengths(const OpArgs& a) {
    if (!d_.lengths) return;
    ECHELON_CUDA(cudaMemcpyAsync(lengths_.get(), tensor<const int>(a, at_.lengths),
                                 static_cast<std::size_t>(d_.N) * sizeof(int), cudaMemcpyDeviceToHost,
                                 context_.stream()));
    context_.synchronize();
    const int* lengths = reinterpret_cast<const int*>(lengths_.get());
    for (std::int64_t n = 0; n < d_.N; ++n)
      ECHELON_CHECK(lengths[n] >= 1 && lengths[n] <= d_.T, "sample {} has length {}, which is not in [1, {}] ({})", n,
                    lengths[n], d_.T, text_);
    library_.set_lengths(lengths);
  }

  const void* weights(const OpArgs& a) {
    const auto* source = tensor<const P>(a, at_.weight_x);
    if (source != source_ || a.parameter_version != version_) {
      pack_rnn_weights(
          parts_,
          {source, tensor<const P>(a, at_.weight_h), tensor<const P>(a, at_.bias_x), tensor<const P>(a, at_.bias_h)},
          static_cast<T*>(packed_.data()), context_.stream());
      source_ = source;
      version_ = a.parameter_version;
    }
    return packed_.data();
  }

  Sequences sequences(const OpArgs& a, std::int64_t values) const {
    const auto* lengths = at_.lengths < 0 ? nullptr : tensor<const std::int32_t>(a, at_.lengths);
    return {.N = d_.N, .T = d_.T, .F = values, .lengths = lengths};
  }
  // Returns a sequence that the library can read: itself, or a copy in scratch if it is reversed or not aligned.
  const T* onward(const OpArgs& a, int index, std::int64_t values, std::size_t at) const {
    const T* sequence = tensor<const T>(a, index);
    if (!d_.reverse && aligned(sequence)) return sequence;
    place_sequences(sequences(a, values), sequence, scratch(a, at), d_.reverse, false, context_.stream());
    return scratch(a, at);
  }
  // The same for a state; null if there is none.
  const T* state(const OpArgs& a, int index, std::size_t at) const {
    if (index < 0) return nullptr;
    const T* given = tensor<const T>(a, index);
    if (aligned(given)) return given;
    ECHELON_CUDA(cudaMemcpyAsync(scratch(a, at), given, state_bytes(), cudaMemcpyDeviceToDevice, context_.stream()));
    return scratch(a, at);
  }
  // Returns where the library writes a state: its final place, or scratch from which it is copied.
  T* state_target(const OpArgs& a, int index, std::size_t at) const {
    if (index < 0) return nullptr;
    return aligned(tensor<T>(a, index)) ? tensor<T>(a, index) : scratch(a, at);
  }
  void put_state(const OpArgs& a, int index, const T* from, bool add) const {
    if (index < 0 || from == tensor<T>(a, index)) return;
    place_sequences(Sequences{.N = d_.N, .T = 1, .F = d_.H}, from, tensor<T>(a, index), false, add, context_.stream());
  }

  using P = Wide<T>;  // type of parameters
  const Context& context_;
  RnnDims d_;
  RnnArgs at_;
  std::string text_;
  RnnDescriptors library_;
  Memory packed_;
  RnnParts parts_;
  const P* source_ = nullptr;  // the weights that packed_ holds
  std::uint64_t version_ = 0;
  Parts scratch_;
  std::size_t work_at_, x_at_, y_at_, h0_at_, c0_at_;
  OwnedHostMemory lengths_;  // holds ints
};

template <class T>
class RnnForward final : public Rnn<T> {
  using Base = Rnn<T>;
  using Base::at_;
  using Base::context_;
  using Base::d_;
  using Base::library_;

 public:
  RnnForward(const Context& context, const OpSpec& spec) : Base(context, spec) {
    hn_at_ = this->scratch_.take(this->state_bytes());
    cn_at_ = this->scratch_.take(this->state_bytes());
  }

  void run(const OpArgs& a) override {
    context_.use();
    this->take_lengths(a);
    T* y = tensor<T>(a, at_.y);
    const bool stage = d_.reverse || !aligned(y);
    T* onward_y = stage ? this->scratch(a, this->y_at_) : y;
    T* hn = this->state_target(a, at_.hn, hn_at_);
    T* cn = this->state_target(a, at_.cn, cn_at_);
    ECHELON_CUDA(cudnnRNNForward(context_.dnn(), library_.rnn(), CUDNN_FWD_MODE_TRAINING, nullptr, library_.x(),
                                 this->onward(a, at_.x, d_.F, this->x_at_), library_.y(), onward_y, library_.state(),
                                 this->state(a, at_.h0, this->h0_at_), hn, library_.state(),
                                 this->state(a, at_.c0, this->c0_at_), cn, library_.weight_bytes(), this->weights(a),
                                 library_.work_bytes(), this->scratch(a, this->work_at_), library_.reserve_bytes(),
                                 a.saved));
    if (stage) place_sequences(this->sequences(a, d_.H), onward_y, y, d_.reverse, false, context_.stream());
    this->put_state(a, at_.hn, hn, false);
    this->put_state(a, at_.cn, cn, false);
    check_launch(this->text_);
  }

 private:
  std::size_t hn_at_, cn_at_;
};

template <class T>
class RnnBackward final : public Rnn<T> {
  using Base = Rnn<T>;
  using Base::at_;
  using Base::context_;
  using Base::d_;
  using Base::library_;
  using typename Base::P;

 public:
  RnnBackward(const Context& context, const OpSpec& spec) : Base(context, spec) {
    dweights_at_ = this->scratch_.take(library_.weight_bytes());
    dx_at_ = this->scratch_.take(this->elems(d_.T, d_.F) * sizeof(T));
    dy_at_ = this->scratch_.take(this->elems(d_.T, d_.H) * sizeof(T));
    for (std::size_t* at : {&dhn_at_, &dcn_at_, &dh0_at_, &dc0_at_}) *at = this->scratch_.take(this->state_bytes());
  }

  void run(const OpArgs& a) override {
    context_.use();
    this->take_lengths(a);
    const T* y = this->onward(a, at_.y, d_.H, this->y_at_);
    const T* h0 = this->state(a, at_.h0, this->h0_at_);
    data(a, y, h0);
    weights_gradient(a, y, h0);
    check_launch(this->text_);
  }

 private:
  // The gradient of y in a form that the library can read; zeros if none arrives.
  const T* dy(const OpArgs& a) const {
    if (at_.dy >= 0) return this->onward(a, at_.dy, d_.H, dy_at_);
    ECHELON_CUDA(cudaMemsetAsync(this->scratch(a, dy_at_), 0, this->elems(d_.T, d_.H) * sizeof(T), context_.stream()));
    return this->scratch(a, dy_at_);
  }

  void data(const OpArgs& a, const T* y, const T* h0) {
    T* dx = this->scratch(a, dx_at_);
    T* dh = at_.dh0 < 0 ? nullptr : this->scratch(a, dh0_at_);
    T* dc = at_.dc0 < 0 ? nullptr : this->scratch(a, dc0_at_);
    ECHELON_CUDA(cudnnRNNBackwardData_v8(
        context_.dnn(), library_.rnn(), nullptr, library_.y(), y, dy(a), library_.x(), dx, library_.state(), h0,
        this->state(a, at_.dhn, dhn_at_), dh, library_.state(), this->state(a, at_.c0, this->c0_at_),
        this->state(a, at_.dcn, dcn_at_), dc, library_.weight_bytes(), this->weights(a), library_.work_bytes(),
        this->scratch(a, this->work_at_), library_.reserve_bytes(), a.saved));
    place_sequences(this->sequences(a, d_.F), dx, tensor<T>(a, at_.dx), d_.reverse, adds(a, at_.dx), context_.stream());
    if (dh) this->put_state(a, at_.dh0, dh, adds(a, at_.dh0));
    if (dc) this->put_state(a, at_.dc0, dc, adds(a, at_.dc0));
  }

  // Called after `data`, with the same reserve space; the library adds to its weight space.
  void weights_gradient(const OpArgs& a, const T* y, const T* h0) {
    T* space = this->scratch(a, dweights_at_);
    ECHELON_CUDA(cudaMemsetAsync(space, 0, library_.weight_bytes(), context_.stream()));
    ECHELON_CUDA(cudnnRNNBackwardWeights_v8(context_.dnn(), library_.rnn(), CUDNN_WGRAD_MODE_ADD, nullptr, library_.x(),
                                            this->onward(a, at_.x, d_.F, this->x_at_), library_.state(), h0,
                                            library_.y(), y, library_.weight_bytes(), space, library_.work_bytes(),
                                            this->scratch(a, this->work_at_), library_.reserve_bytes(), a.saved));
    const auto gradient = [&](int index) { return tensor<P>(a, index); };
    unpack_rnn_gradients(
        this->parts_, space,
        {gradient(at_.dweight_x), gradient(at_.dweight_h), gradient(at_.dbias_x), gradient(at_.dbias_h)},
        {adds(a, at_.dweight_x), adds(a, at_.dweight_h), adds(a, at_.dbias_x), adds(a, at_.dbias_h)},
        context_.stream());
  }

  std::size_t dweights_at_, dx_at_, dy_at_, dhn_at_, dcn_at_, dh0_at_, dc0_at_;
};

}  // namespace

std::unique_ptr<Op> make_rnn(const Context& context, const OpSpec& spec) {
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    if (spec.kind == OpKind::rnn_forward) return std::make_unique<RnnForward<T>>(context, spec);
    return std::make_unique<RnnBackward<T>>(context, spec);
  });
}

}  // namespace echelon::cuda
