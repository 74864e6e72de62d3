// SPDX-License-Identifier: Apache-2.0
// Looks up rows of a table by index; sums gradients by row.
#include <vector>

#include "device/reference/ops.hpp"
#include "device/row_bits.hpp"

namespace echelon::inline device::reference {
namespace {

bool here(const EmbeddingDims& d, std::int64_t id) { return id >= d.first && id < d.first + d.V; }

template <class T>
void forward(const EmbeddingDims& d, const OpArgs& args) {
  const auto* ids = in<std::int32_t>(args, 0);
  const T* w = in<T>(args, 1);
  const Output<T> y(args, 2);
  for (std::int64_t r = 0; r < d.rows; ++r)
    for (std::int64_t f = 0; f < d.F; ++f)
      y.put(r * d.F + f, here(d, ids[r]) ? static_cast<double>(w[(ids[r] - d.first) * d.F + f]) : 0);
}

template <class T>
void backward(const EmbeddingDims& d, const OpArgs& args, std::vector<double>& sums) {
  const auto* ids = in<std::int32_t>(args, 0);
  const T* dy = in<T>(args, 1);
  const Output<T> dw(args, 2);
  for (double& sum : sums) sum = 0;
  for (std::int64_t r = 0; r < d.rows; ++r)
    for (std::int64_t f = 0; f < d.F && here(d, ids[r]); ++f)
      sums[static_cast<std::size_t>((ids[r] - d.first) * d.F + f)] += static_cast<double>(dy[r * d.F + f]);
  for (std::size_t i = 0; i < sums.size(); ++i) dw.put(static_cast<std::int64_t>(i), sums[i]);
}

// Zeroes the rows that an earlier pass marked, then works as `backward`, except that rows without a mark are not
// touched.
template <class T>
void sparse_backward(const EmbeddingDims& d, const OpArgs& args, std::vector<double>& sums) {
  const auto* ids = in<std::int32_t>(args, 0);
  const T* dy = in<T>(args, 1);
  T* dw = static_cast<T*>(args.tensors[2]);
  auto* touched = static_cast<std::uint32_t*>(args.tensors[3]);
  if ((args.accumulate & 4U) == 0)
    for (std::int64_t v = 0; v < d.V; ++v) {
      if (!row_marked(touched, v)) continue;
      for (std::int64_t f = 0; f < d.F; ++f) dw[v * d.F + f] = T(0);
    }
  if ((args.accumulate & 8U) == 0)
    for (std::int64_t i = 0; i < row_words(d.V); ++i) touched[i] = 0;
  for (double& sum : sums) sum = 0;
  for (std::int64_t r = 0; r < d.rows; ++r)
    for (std::int64_t f = 0; f < d.F && here(d, ids[r]); ++f)
      sums[static_cast<std::size_t>((ids[r] - d.first) * d.F + f)] += static_cast<double>(dy[r * d.F + f]);
  for (std::int64_t r = 0; r < d.rows; ++r)
    if (here(d, ids[r])) mark_row(touched, ids[r] - d.first);
  for (std::int64_t v = 0; v < d.V; ++v)
    for (std::int64_t f = 0; f < d.F && row_marked(touched, v); ++f) {
      const auto at = static_cast<std::size_t>(v * d.F + f);
      dw[at] = static_cast<T>(static_cast<double>(dw[at]) + sums[at]);
    }
}

}  // namespace

std::unique_ptr<Op> make_embedding(const OpSpec& spec) {
  const auto d = std::get<EmbeddingDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) {
    if (spec.kind == OpKind::embedding_forward) return loop_op([d](const OpArgs& a) { forward<T>(d, a); });
    if (spec.kind != OpKind::embedding_backward) not_of_family(spec);
    std::vector<double> sums(static_cast<std::size_t>(d.V * d.F));
    return loop_op(
        [d, sums](const OpArgs& a) mutable { d.sparse ? sparse_backward<T>(d, a, sums) : backward<T>(d, a, sums); });
  });
}

}  // namespace echelon::inline device::reference
