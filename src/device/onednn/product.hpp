// Matrix products by the library: whole matrices, and rows times weights that are packed once a parameter version.
#pragma once

#include <cstdint>

#include "device/onednn/primitive.hpp"

namespace echelon::inline device::onednn {

// Row-major; `columns` is the distance of its rows.
struct Matrix {
  const float* data;
  std::int64_t columns;
  bool transposed = false;
};

// c (m, n) = a b + beta c; a (m, k), b (k, n) where not transposed.
inline void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b, float beta,
                     float* c, std::int64_t c_columns) {
  dnnl::error::wrap_c_api(dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data,
                                     a.columns, b.data, b.columns, beta, c, c_columns),
                          "could not multiply two matrices");
}

// y (rows, outputs) = x (rows, inputs) w, w (inputs, outputs), or given as its transpose (outputs, inputs). Rows of x
// are x_columns apart.
class PackedProduct {
 public:
  PackedProduct(const Context& context, std::int64_t rows, std::int64_t inputs, std::int64_t outputs, bool transposed,
                std::int64_t x_columns)
      : PackedProduct(
            context, strided({rows, inputs}, {x_columns, 1}),
            strided({inputs, outputs}, transposed ? dnnl::memory::dims{1, inputs} : dnnl::memory::dims{outputs, 1}),
            strided({rows, outputs}, {outputs, 1})) {}

  const std::string& implementation() const { return implementation_; }
  void share_weights(const PackedProduct& other) { weights_.share(other.weights_); }
  void run(const float* x, const float* w, std::uint64_t version, float* y) {
    body_.run({x, weights_.get(w, version), y});
  }

 private:
  PackedProduct(const Context& context, const dnnl::memory::desc& x, const dnnl::memory::desc& w,
                const dnnl::memory::desc& y) {
    const dnnl::memory::desc any(w.dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
    const dnnl::matmul::primitive_desc desc({x, any, y}, context.engine);
    implementation_ = desc.impl_info_str();
    weights_ = PackedWeights(context, w, desc.weights_desc());
    body_ = Primitive(context, dnnl::matmul(desc),
                      {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, desc.weights_desc()}, {DNNL_ARG_DST, y}});
  }
  static dnnl::memory::desc strided(const dnnl::memory::dims& extents, const dnnl::memory::dims& strides) {
    return {extents, dnnl::memory::data_type::f32, strides};
  }

  std::string implementation_;
  PackedWeights weights_;
  Primitive body_;
};

}  // namespace echelon::inline device::onednn
