// SPDX-License-Identifier: Apache-2.0
// Matrix products by the library: of f32 matrices, and of factors in a given precision or of packed weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "device/onednn/primitive.hpp"
#include "device/onednn/tile_product.hpp"

namespace echelon::inline device::onednn {

// Row-major; `columns` is the distance between its rows.
struct Matrix {
  const float* data;
  std::int64_t columns;
  bool transposed = false;
};

// c (m, n) = a b + beta c; a is (m, k) and b (k, n) if not transposed.
inline void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b, float beta,
                     float* c, std::int64_t c_columns) {
  dnnl::error::wrap_c_api(dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data,
                                     a.columns, b.data, b.columns, beta, c, c_columns),
                          "oneDNN could not multiply two matrices");
}

// A factor (rows, columns) of a product, or its result: row-major in memory, or the transpose of a row-major matrix.
// `stride`: distance between rows in memory; tiles also take rows with two strides (Lines).
struct Factor {
  std::int64_t rows, columns, stride;
  bool transposed = false;
  bool wide = false;  // f32 in memory, whatever the precision
  std::int64_t inner = Lines{}.inner, outer = 0;
  dnnl::memory::desc desc(dnnl::memory::data_type type) const {
    using Extents = dnnl::memory::dims;
    return {Extents{rows, columns}, type, transposed ? Extents{1, stride} : Extents{stride, 1}};
  }
  // Number of elements from the first one to the last one, inclusive.
  std::int64_t elems() const { return ((transposed ? columns : rows) - 1) * stride + (transposed ? rows : columns); }
  Lines lines(bool halves) const { return {.halves = halves && !wide, .step = stride, .inner = inner, .outer = outer}; }
};

// c = a b + bias, or c += a b. Factors are in precision.type and sums in f32; c is in `stored`. Unlike in multiply(),
// extents and precision are known before the first run. `weights`: b is a parameter, in f32 whatever the precision, and
// packed once per parameter version. Factors that are `wide` are rounded on the way. Products in bf16 use the matrix
// unit if there is one (tile_product.hpp), else the library.
class Product {
 public:
  struct Form {
    bool weights = false, bias = false, adds = false;
    const Product* same_left = nullptr;  // a product with the same left factor, which runs before this one
    dnnl::memory::data_type stored = dnnl::memory::data_type::f32;
  };
  // Reserves what it needs in `scratch`.
  Product(const Context& context, const Precision& precision, const Factor& a, const Factor& b, const Factor& c,
          const Form& form, ScratchPlan& scratch);

  std::string implementation() const { return tiles_ ? "own tiles" : implementation_; }
  void share_weights(const Product& other);
  void run(const ProductArgs& args);

 private:
  // A factor that is rounded before the library sees it.
  struct Rounded {
    std::int64_t elems = 0;
    std::size_t at = 0;
  };
  const void* operand(const Rounded& rounded, const void* given, std::byte* scratch) const;

  Precision precision_;
  int threads_;
  bool packs_;
  std::string implementation_;
  std::optional<TileProduct> tiles_;
  Rounded a_, b_;
  PackedWeights weights_;
  Primitive body_, add_;
};

}  // namespace echelon::inline device::onednn
