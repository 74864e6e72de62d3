// SPDX-License-Identifier: Apache-2.0
// Looks up rows of a table by index. Threads share the columns of the gradient, so that each row's sum has the same
// order for any number of threads.
#include <algorithm>

#include "device/onednn/ops.hpp"
#include "device/onednn/planes.hpp"
#include "device/row_bits.hpp"

namespace echelon::inline device::onednn {
namespace {

// T is the type of looked up rows and their gradients, float or BHalf.
template <class T>
class Embedding final : public Op {
 public:
  Embedding(const Context& context, const OpSpec& spec)
      : d_(std::get<EmbeddingDims>(spec.dims)),
        backward_(spec.kind == OpKind::embedding_backward),
        threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override { backward_ ? backward(args) : forward(args); }

 private:
  bool here(std::int64_t id) const { return id >= d_.first && id < d_.first + d_.V; }
  bool worth_a_team() const { return threads_ > 1 && d_.rows * d_.F >= kParallelElems; }

  void forward(const OpArgs& args) const {
    const auto* ids = static_cast<const std::int32_t*>(args.tensors[0]);
    const auto* w = static_cast<const float*>(args.tensors[1]);
    auto* y = static_cast<T*>(args.tensors[2]);
#pragma omp parallel for num_threads(threads_) if (worth_a_team())
    for (std::int64_t r = 0; r < d_.rows; ++r) {
      T* to = y + r * d_.F;
      if (!here(ids[r])) {
        std::fill_n(to, d_.F, T{});
        continue;
      }
      const float* from = w + (ids[r] - d_.first) * d_.F;
#pragma omp simd
      for (std::int64_t f = 0; f < d_.F; ++f) to[f] = rounded_to<T>(from[f]);
    }
  }

  void backward(const OpArgs& args) const {
    const auto* ids = static_cast<const std::int32_t*>(args.tensors[0]);
    const auto* dy = static_cast<const T*>(args.tensors[1]);
    auto* dw = static_cast<float*>(args.tensors[2]);
    const bool add = (args.accumulate & 4U) != 0;
    if (d_.sparse)
      mark(ids, dw, static_cast<std::uint32_t*>(args.tensors[3]), add);
    else if (!add)
      std::fill_n(dw, d_.V * d_.F, 0.0f);
    const int teams = worth_a_team() ? threads_ : 1;
#pragma omp parallel for num_threads(teams) if (teams > 1)
    for (int team = 0; team < teams; ++team) {
      const std::int64_t first = d_.F * team / teams, count = d_.F * (team + 1) / teams - first;
      for (std::int64_t r = 0; r < d_.rows; ++r) {
        if (!here(ids[r])) continue;
        const T* from = dy + r * d_.F + first;
        float* to = dw + (ids[r] - d_.first) * d_.F + first;
#pragma omp simd
        for (std::int64_t f = 0; f < count; ++f) to[f] += widened(from[f]);
      }
    }
  }

  // Clears the previously marked rows, unless the op adds, and marks those of ids.
  void mark(const std::int32_t* ids, float* dw, std::uint32_t* touched, bool add) const {
    if (!add) {
      for_each_run(touched, d_.V,
                   [&](std::int64_t first, std::int64_t count) { std::fill_n(dw + first * d_.F, count * d_.F, 0.0f); });
      std::fill_n(touched, row_words(d_.V), 0U);
    }
    for (std::int64_t r = 0; r < d_.rows; ++r)
      if (here(ids[r])) mark_row(touched, ids[r] - d_.first);
  }

  EmbeddingDims d_;
  bool backward_;
  int threads_;
};

}  // namespace

std::unique_ptr<Op> make_embedding(Context& context, const OpSpec& spec) {
  return make_stored<Embedding>(spec.dtype, context, spec);
}

}  // namespace echelon::inline device::onednn
