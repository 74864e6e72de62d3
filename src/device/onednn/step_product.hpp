// The product of a recurrent step: the few rows of a batch by weights that every step reads again.
//
// Such a product does little work for each weight, and the weights of a large layer are more than a core's cache: it
// takes as long as they take to come. So here weights lie in panels in the order in which they are read, the next are
// fetched while those before are used, each thread keeps to panels of its own, and every second run goes through them
// backwards: it starts with those that the run before left in cache. The library's body does none of this: 0.68 of the
// peak beside 0.97 for 20 rows by 650 x 2600 with AVX-512, 0.45 beside 0.95 for 32 rows by 256 x 1024 with AVX2.
//
// In halves rows and weights are rounded to bf16 and lie so: half the bytes to wait for, on every CPU in the same
// order. Where there is a matrix unit it multiplies them (tile_product.hpp).
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
  // y (rows, outputs) = x (rows, inputs) w, w (inputs, outputs), or given as its transpose (outputs, inputs). Rows of x
  // are x_columns apart. All are f32, whatever the precision, but for x where it is `rounded`: then run() takes bf16.
  StepProduct(const Context& context, std::int64_t rows, std::int64_t inputs, std::int64_t outputs, bool transposed,
              std::int64_t x_columns, const Precision& precision = kSingle, bool rounded = false);

  std::string implementation() const;
  void share_weights(const StepProduct& other);
  // Whether rows of so many inputs may be rounded before.
  static bool takes_rounded(const Context& context, const Precision& precision, std::int64_t inputs) {
    return precision.halves() && (context.tiles() || inputs % 2 == 0);
  }
  void run(const void* x, const float* w, std::uint64_t version, float* y);

 private:
  template <class T>
  void run_all(const T* x, std::int64_t x_columns, const T* w, float* y);
  // Panels [begin, end).
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
