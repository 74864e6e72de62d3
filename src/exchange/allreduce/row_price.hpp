// What it costs to send the touched rows of a sparse gradient, and when the whole table is cheaper.
//
// Bytes over all ranks of a table of V rows of F values, of which k ranks touch R together (a row counts once for each
// rank that touches it):
//   rows    (k-1) R (4 + F e)          whole   the all-reduce's price, ring: 2 (k-1) V F e
// A step sends the table whole above exchange.sparse_density, the share of rows that a rank touches on average, R / (k
// V); 0: where the bytes break even. With a lazy optimiser all ranks must know the touched rows: the whole table
// then has a column of marks beside it.
#pragma once

#include <string>

#include "base/dtype.hpp"
#include "comm/collective/algorithms.hpp"
#include "device/parameter.hpp"

namespace echelon::inline exchange {

struct RowRequest {
  std::string algorithm;       // of the all-reduce of whole tables
  AllreduceRequest allreduce;  // its ranks and hosts
  DType dtype = DType::f32;
  bool lazy = false;
  double sparse_density = 0;
};

double rows_bytes(const RowRequest& request, const Parameter& table, double rows);
double whole_bytes(const RowRequest& request, const Parameter& table);
// The share R / (k V) above which a step sends the table whole; 1: never.
double densest_rows(const RowRequest& request, const Parameter& table);

}  // namespace echelon::inline exchange
