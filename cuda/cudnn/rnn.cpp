// Recurrent layers through cuDNN: one layer, one direction, batch-major padded sequences.
//
// The library runs one direction only; `reverse` turns each sequence around before and after. Its weights lie in a
// space of its own format, packed from ours at every forward pass into `saved`, behind its reserve: the backward pass
// finds them there. Lengths are host values to the library, so that a batch of unlike lengths waits once for the
// device.
#include <algorithm>
#include <memory>

#include "base/check.hpp"
#include "cuda/cudnn/rnn_descriptors.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/kernels/recurrent.hpp"
#include "cuda/kernels/vector.hpp"
#include "cuda/make.hpp"
#include "device/rnn_args.hpp"

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
        library_(context.dnn(), d_, spec.dtype) {
    reserve_at_ = saved_.take(library_.reserve_bytes());
    weights_at_ = saved_.take(library_.weight_bytes());
    work_at_ = scratch_.take(library_.work_bytes());
    x_at_ = scratch_.take(elems(d_.T, d_.F) * sizeof(T));
    y_at_ = scratch_.take(elems(d_.T, d_.H) * sizeof(T));
    if (d_.lengths) {
      void* pinned = nullptr;
      ECHELON_CUDA(cudaHostAlloc(&pinned, static_cast<std::size_t>(d_.N) * sizeof(int), cudaHostAllocDefault));
      lengths_ = std::unique_ptr<int, cudaError_t (*)(void*)>(static_cast<int*>(pinned), cudaFreeHost);
    }
  }

  std::size_t saved_bytes() const override { return saved_.bytes(); }
  std::size_t scratch_bytes() const override { return scratch_.bytes(); }
  std::string implementation() const override { return "cudnn rnn, standard algorithm"; }

 protected:
  std::size_t elems(std::int64_t steps, std::int64_t values) const {
    return static_cast<std::size_t>(d_.N * steps * values);
  }
  template <class U>
  static U* optional(const OpArgs& a, int place) {
    return place < 0 ? nullptr : tensor<U>(a, place);
  }
  static void* part(void* memory, std::size_t at) { return static_cast<std::byte*>(memory) + at; }
  T* scratch(const OpArgs& a, std::size_t at) const { return static_cast<T*>(part(a.scratch, at)); }

  void take_lengths(const OpArgs& a) {
    if (!d_.lengths) return;
    ECHELON_CUDA(cudaMemcpyAsync(lengths_.get(), tensor<const int>(a, at_.lengths),
                                 static_cast<std::size_t>(d_.N) * sizeof(int), cudaMemcpyDeviceToHost,
                                 context_.stream()));
    ECHELON_CUDA(cudaStreamSynchronize(context_.stream()));
    for (std::int64_t n = 0; n < d_.N; ++n)
      ECHELON_CHECK(lengths_.get()[n] >= 1 && lengths_.get()[n] <= d_.T, "sample {} has length {} of {} ({})", n,
                    lengths_.get()[n], d_.T, text_);
    library_.set_lengths(lengths_.get());
  }

  Sequences sequences(const OpArgs& a, std::int64_t values) const {
    return {.N = d_.N, .T = d_.T, .F = values, .lengths = optional<const std::int32_t>(a, at_.lengths)};
  }
  // A tensor as the library reads it: itself, or turned around into scratch.
  const T* onward(const OpArgs& a, const T* sequence, std::int64_t values, std::size_t at) const {
    if (!d_.reverse) return sequence;
    place_sequences(sequences(a, values), sequence, scratch(a, at), true, false, context_.stream());
    return scratch(a, at);
  }

  const Context& context_;
  RnnDims d_;
  RnnArgs at_;
  std::string text_;
  RnnDescriptors library_;
  Parts saved_, scratch_;
  std::size_t reserve_at_, weights_at_, work_at_, x_at_, y_at_;
  std::unique_ptr<int, cudaError_t (*)(void*)> lengths_{nullptr, cudaFreeHost};
};

template <class T>
class RnnForward final : public Rnn<T> {
  using Base = Rnn<T>;
  using Base::at_;
  using Base::context_;
  using Base::d_;
  using Base::library_;

 public:
  using Base::Base;

  void run(const OpArgs& a) override {
    context_.use();
    this->take_lengths(a);
    void* weights = Base::part(a.saved, this->weights_at_);
    pack(a, weights);
    T* y = tensor<T>(a, at_.y);
    T* onward_y = d_.reverse ? this->scratch(a, this->y_at_) : y;
    ECHELON_CUDA(cudnnRNNForward(context_.dnn(), library_.rnn(), CUDNN_FWD_MODE_TRAINING, nullptr, library_.x(),
                                 this->onward(a, tensor<const T>(a, at_.x), d_.F, this->x_at_), library_.y(), onward_y,
                                 library_.state(), Base::template optional<const T>(a, at_.h0), tensor<T>(a, at_.hn),
                                 library_.state(), Base::template optional<const T>(a, at_.c0),
                                 Base::template optional<T>(a, at_.cn), library_.weight_bytes(), weights,
                                 library_.work_bytes(), Base::part(a.scratch, this->work_at_), library_.reserve_bytes(),
                                 Base::part(a.saved, this->reserve_at_)));
    if (d_.reverse) place_sequences(this->sequences(a, d_.H), onward_y, y, true, false, context_.stream());
    check_launch(this->text_);
  }

 private:
  void pack(const OpArgs& a, void* weights) const {
    for (bool recurrent : {false, true}) {
      const auto matrix = static_cast<std::size_t>(d_.H * (recurrent ? d_.H : d_.F));
      const auto bias = static_cast<std::size_t>(d_.H);
      const T* w = tensor<const T>(a, recurrent ? at_.weight_h : at_.weight_x);
      const T* b = tensor<const T>(a, recurrent ? at_.bias_h : at_.bias_x);
      for (int g = 0; g < static_cast<int>(d_.G()); ++g) {
        const auto to = library_.part(context_.dnn(), weights, g, recurrent);
        copy(to.matrix, w + static_cast<std::size_t>(g) * matrix, matrix);
        copy(to.bias, b + static_cast<std::size_t>(g) * bias, bias);
      }
    }
  }
  void copy(void* to, const T* from, std::size_t n) const {
    ECHELON_CUDA(cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToDevice, context_.stream()));
  }
};

template <class T>
class RnnBackward final : public Rnn<T> {
  using Base = Rnn<T>;
  using Base::at_;
  using Base::context_;
  using Base::d_;
  using Base::library_;

 public:
  RnnBackward(const Context& context, const OpSpec& spec) : Base(context, spec) {
    dweights_at_ = this->scratch_.take(library_.weight_bytes());
    dx_at_ = this->scratch_.take(this->elems(d_.T, d_.F) * sizeof(T));
    dy_at_ = this->scratch_.take(this->elems(d_.T, d_.H) * sizeof(T));
    dh_at_ = this->scratch_.take(this->elems(1, d_.H) * sizeof(T));
    dc_at_ = this->scratch_.take(this->elems(1, d_.H) * sizeof(T));
  }

  void run(const OpArgs& a) override {
    context_.use();
    this->take_lengths(a);
    const T* y = this->onward(a, tensor<const T>(a, at_.y), d_.H, this->y_at_);
    data(a, y);
    weights(a, y);
    check_launch(this->text_);
  }

 private:
  // The gradient of y as the library reads it; zeros where none arrives.
  const T* dy(const OpArgs& a) const {
    if (at_.dy >= 0) return this->onward(a, tensor<const T>(a, at_.dy), d_.H, dy_at_);
    ECHELON_CUDA(cudaMemsetAsync(this->scratch(a, dy_at_), 0, this->elems(d_.T, d_.H) * sizeof(T), context_.stream()));
    return this->scratch(a, dy_at_);
  }

  void data(const OpArgs& a, const T* y) {
    T* dx = this->scratch(a, dx_at_);
    T* dh = at_.dh0 < 0 ? nullptr : this->scratch(a, dh_at_);
    T* dc = at_.dc0 < 0 ? nullptr : this->scratch(a, dc_at_);
    ECHELON_CUDA(cudnnRNNBackwardData_v8(
        context_.dnn(), library_.rnn(), nullptr, library_.y(), y, dy(a), library_.x(), dx, library_.state(),
        Base::template optional<const T>(a, at_.h0), Base::template optional<const T>(a, at_.dhn), dh, library_.state(),
        Base::template optional<const T>(a, at_.c0), Base::template optional<const T>(a, at_.dcn), dc,
        library_.weight_bytes(), Base::part(a.saved, this->weights_at_), library_.work_bytes(),
        Base::part(a.scratch, this->work_at_), library_.reserve_bytes(), Base::part(a.saved, this->reserve_at_)));
    place_sequences(this->sequences(a, d_.F), dx, tensor<T>(a, at_.dx), d_.reverse, adds(a, at_.dx), context_.stream());
    if (dh) put(a, at_.dh0, 0, dh, this->elems(1, d_.H));
    if (dc) put(a, at_.dc0, 0, dc, this->elems(1, d_.H));
  }

  // After `data`, on the same reserve; the library adds into its space.
  void weights(const OpArgs& a, const T* y) {
    void* space = Base::part(a.scratch, dweights_at_);
    ECHELON_CUDA(cudaMemsetAsync(space, 0, library_.weight_bytes(), context_.stream()));
    ECHELON_CUDA(cudnnRNNBackwardWeights_v8(context_.dnn(), library_.rnn(), CUDNN_WGRAD_MODE_ADD, nullptr, library_.x(),
                                            this->onward(a, tensor<const T>(a, at_.x), d_.F, this->x_at_),
                                            library_.state(), Base::template optional<const T>(a, at_.h0), library_.y(),
                                            y, library_.weight_bytes(), space, library_.work_bytes(),
                                            Base::part(a.scratch, this->work_at_), library_.reserve_bytes(),
                                            Base::part(a.saved, this->reserve_at_)));
    for (bool recurrent : {false, true}) {
      const auto matrix = static_cast<std::size_t>(d_.H * (recurrent ? d_.H : d_.F));
      const auto bias = static_cast<std::size_t>(d_.H);
      for (int g = 0; g < static_cast<int>(d_.G()); ++g) {
        const auto from = library_.part(context_.dnn(), space, g, recurrent);
        const auto gate = static_cast<std::size_t>(g);
        put(a, recurrent ? at_.dweight_h : at_.dweight_x, gate * matrix, static_cast<const T*>(from.matrix), matrix);
        put(a, recurrent ? at_.dbias_h : at_.dbias_x, gate * bias, static_cast<const T*>(from.bias), bias);
      }
    }
  }

  void put(const OpArgs& a, int place, std::size_t first, const T* from, std::size_t n) const {
    T* to = tensor<T>(a, place) + first;
    if (adds(a, place))
      vector_add(to, from, n, context_.stream());
    else
      ECHELON_CUDA(cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToDevice, context_.stream()));
  }

  std::size_t dweights_at_, dx_at_, dy_at_, dh_at_, dc_at_;
};

}  // namespace

std::unique_ptr<Op> make_rnn(const Context& context, const OpSpec& spec) {
  return with_float(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    if (spec.kind == OpKind::rnn_forward) return std::make_unique<RnnForward<T>>(context, spec);
    return std::make_unique<RnnBackward<T>>(context, spec);
  });
}

}  // namespace echelon::cuda
