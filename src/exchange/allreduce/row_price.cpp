// SPDX-License-Identifier: Apache-2.0
#include "exchange/allreduce/row_price.hpp"

#include <algorithm>

namespace echelon::inline exchange {
namespace {

double allreduce_bytes(const RowRequest& request, std::int64_t elems) {
  AllreduceRequest allreduce = request.allreduce;
  allreduce.elems = elems;
  return static_cast<double>(price_allreduce(request.algorithm, allreduce).payload_elems) *
         static_cast<double>(size_of(request.dtype));
}

}  // namespace

// Each row number and row is forwarded k-1 times.
double rows_bytes(const RowRequest& request, const Parameter& table, double rows) {
  const double row_bytes =
      4 + static_cast<double>(table.shape.row_elems()) * static_cast<double>(size_of(request.dtype));
  return (request.allreduce.ranks - 1) * rows * row_bytes;
}

double whole_bytes(const RowRequest& request, const Parameter& table) {
  return allreduce_bytes(request, table.elems()) + (request.lazy ? allreduce_bytes(request, table.shape[0]) : 0);
}

// Sums in shared memory send no messages: the bytes of a ring stand for the bytes that they copy.
double densest_rows(const RowRequest& request, const Parameter& table) {
  if (request.sparse_density > 0) return request.sparse_density;
  RowRequest sending = request;
  if (algorithm_traits(request.algorithm).in_memory) sending.algorithm = "ring";
  const double all = static_cast<double>(request.allreduce.ranks) * static_cast<double>(table.shape[0]);
  return request.allreduce.ranks == 1 ? 1
                                      : std::min(1.0, whole_bytes(sending, table) / rows_bytes(request, table, all));
}

}  // namespace echelon::inline exchange
