// SPDX-License-Identifier: Apache-2.0
// Weights in panels of bf16 (panel_kernel.hpp), packed from f32 once per parameter version.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.hpp"
#include "device/onednn/halves.hpp"
#include "device/onednn/ops.hpp"

namespace echelon::inline device::onednn {

class HalfPanels {
 public:
  // w is (inputs, outputs), or given as its transpose. Inputs are padded with zeros to a multiple of 16, outputs to a
  // whole panel.
  HalfPanels(const Context& context, std::int64_t inputs, std::int64_t outputs, bool transposed);
  const BHalf* get(const float* w, std::uint64_t version);
  // Makes this object use the panels of `other`, which must have the same plain weights.
  void share(const HalfPanels& other);

 private:
  struct Packed {
    Memory memory;
    const float* source = nullptr;
    std::uint64_t version = 0;
  };
  void pack(const float* w) const;
  void pack_panel(std::int64_t panel, const float* w) const;
  // Pack the panel's columns of w, which start at `w`.
  void pack_rows(const float* w, std::int64_t columns, BHalf* to) const;
  void pack_columns(const float* w, std::int64_t columns, BHalf* to) const;

  int threads_;
  std::int64_t inputs_, outputs_;
  bool transposed_;
  std::shared_ptr<Packed> packed_;
};

}  // namespace echelon::inline device::onednn
