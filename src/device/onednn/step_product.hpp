// SPDX-License-Identifier: Apache-2.0
// The product of a recurrent step: the few rows of a batch by weights that every step reads again.
//
// Such a product does little work per weight, and the weights of a large layer exceed a core's cache, so its time is
// that of loading them. Here weights are therefore stored in panels in the order in which they are read, the next
// panels are fetched while the current ones are used, each thread keeps to its own panels, and every second run goes
// through them backwards, so that it starts with the panels that the previous run left in cache. The library does none
// of this: it reaches 0.68 of the peak instead of 0.97 for 20 rows by 650 x 2600 with AVX-512, 0.45 instead of 0.95 for
// 32 rows by 256 x 1024 with AVX2.
//
// In halves rows and weights are stored rounded to bf16, which halves the bytes to load, in the same order on every
// CPU. If there is a matrix unit, it multiplies them (tile_product.hpp).
#pragma once

#include <optional>
#include <string>

#include "device/onednn/half_panels.hpp"
#include "device/onednn/panel_kernel.hpp"
#include "device/onednn/product.hpp"
#include "device/onednn/tile_product.hpp"

namespace echelon::inline device::onednn {

class StepProduct {
 public:
  // y (rows, outputs) = x (rows, inputs) w, where w is (inputs, outputs), or given as its transpose (outputs, inputs).
  // Rows of x are x_columns apart. All are f32, whatever the precision, except that run() takes x in bf16 if `rounded`.
  StepProduct(const Context& context, std::int64_t rows, std::int64_t inputs, std::int64_t outputs, bool transposed,
              std::int64_t x_columns, const Precision& precision = kSingle, bool rounded = false);

  std::string implementation() const;
  void share_weights(const StepProduct& other);
  // Whether run() can take rows of this many inputs that were rounded before.
  static bool takes_rounded(const Context& context, const Precision& precision, std::int64_t inputs) {
    return precision.halves() && (context.tiles() || inputs % 2 == 0);
  }
  void run(const void* x, const float* w, std::uint64_t version, float* y);

 private:
  template <class T>
  void run_all(const T* x, std::int64_t x_columns, const T* w, float* y);
  // Runs panels [begin, end).
  template <class T>
  void run_panels(std::int64_t begin, std::int64_t end, const PanelBlock<T>& whole) const;
  template <class T>
  void run_panel(std::int64_t panel, std::int64_t next, const PanelBlock<T>& whole) const;

  int threads_;
  bool avx512_, takes_rounded_;
  PanelForm form_;
  std::int64_t rows_, inputs_, outputs_, x_columns_, panels_, panel_elems_;
  int group_rows_;
  bool backwards_ = false;
  PackedWeights weights_;
  std::optional<HalfPanels> halves_;
  Memory rounded_;  // x in bf16
  std::optional<TileProduct> tiles_;
  Memory packed_;  // x in tiles
};

}  // namespace echelon::inline device::onednn
