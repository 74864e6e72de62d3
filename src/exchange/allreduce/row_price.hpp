// SPDX-License-Identifier: Apache-2.0
// The cost of sending the touched rows of a sparse gradient, and the density above which the whole table is cheaper.
//
// Bytes over all ranks for a table of V rows with F values of e bytes, of which k ranks touch R rows together (a row
// counts once for each rank that touches it):
//   rows    (k-1) R (4 + F e)          whole   the all-reduce's price, ring: 2 (k-1) V F e
// A step sends the table whole if R / (k V), the average share of rows that a rank touches, is above
// exchange.sparse_density; 0 means where both cost the same bytes. With a lazy optimiser all ranks must know the
// touched rows: a whole table is then sent with a column of marks.
#pragma once

#include <string>

#include "base/dtype.hpp"
#include "comm/collective/algorithms.hpp"
#include "device/parameter.hpp"

namespace echelon::inline exchange {

struct RowRequest {
  std::string algorithm;       // of the all-reduce for whole tables
  AllreduceRequest allreduce;  // gives the ranks and hosts
  DType dtype = DType::f32;
  bool lazy = false;
  double sparse_density = 0;
};

double rows_bytes(const RowRequest& request, const Parameter& table, double rows);
double whole_bytes(const RowRequest& request, const Parameter& table);
// The share R / (k V) above which a step sends the table whole; 1: never.
double densest_rows(const RowRequest& request, const Parameter& table);

}  // namespace echelon::inline exchange
