// The product of a recurrent step: the few rows of a batch by weights that every step reads again.
//
// Such a product does little work for each weight, and the weights of a large layer are more than a core's cache: it
// takes as long as they take to come. So here, where the CPU has AVX-512, weights lie in panels in the order in which
// they are read, the next are fetched while those before are used, each thread keeps to panels of its own, and every
// second run goes through them backwards: it starts with those that the run before left in cache. The library's body
// does none of this (0.68 of the peak beside 0.97 for 20 rows by 650 x 2600). Without AVX-512 it is the library's.
#pragma once

#include <optional>
#include <string>

#include "device/onednn/product.hpp"

namespace echelon::inline device::onednn {

class StepProduct {
 public:
  // As PackedProduct.
  StepProduct(const Context& context, std::int64_t rows, std::int64_t inputs, std::int64_t outputs, bool transposed,
              std::int64_t x_columns);

  std::string implementation() const { return library_ ? library_->implementation() : "own panels"; }
  void share_weights(const StepProduct& other);
  void run(const float* x, const float* w, std::uint64_t version, float* y);

 private:
  // Panels [begin, end).
  void run_panels(std::int64_t begin, std::int64_t end, const float* x, const float* w, float* y) const;
  void run_panel(std::int64_t panel, std::int64_t next, const float* x, const float* w, float* y) const;

  int threads_;
  std::int64_t rows_, inputs_, outputs_, x_columns_, panels_, panel_floats_;
  int group_rows_;
  bool backwards_ = false;
  PackedWeights weights_;
  std::optional<PackedProduct> library_;
};

}  // namespace echelon::inline device::onednn
