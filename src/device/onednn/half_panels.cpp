// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/half_panels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "device/onednn/panel_kernel.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

constexpr std::int64_t kColumns = kPanels512.columns;
// A panel's part of a row is one or two cache lines, which the hardware does not prefetch.
constexpr std::int64_t kLine = 16, kAhead = 16;  // floats in a cache line; rows to prefetch ahead

// Writes two elements of the depth in one store.
void put_pair(float even, float odd, BHalf* to) {
  const std::uint32_t pair = rounded_bits(even) >> 16 | rounded_bits(odd);
  std::memcpy(to, &pair, sizeof pair);
}

}  // namespace

HalfPanels::HalfPanels(const Context& context, std::int64_t inputs, std::int64_t outputs, bool transposed)
    : threads_(context.threads),
      inputs_(inputs),
      outputs_(outputs),
      transposed_(transposed),
      packed_(std::make_shared<Packed>()) {
  const std::int64_t elems = panel_parts(outputs, kColumns) * panel_depth(inputs) * kColumns;
  packed_->memory = context.device.allocate(static_cast<std::size_t>(elems) * sizeof(BHalf), "packed weights");
}

const BHalf* HalfPanels::get(const float* w, std::uint64_t version) {
  if (w != packed_->source || version != packed_->version) pack(w);
  packed_->source = w;
  packed_->version = version;
  return static_cast<const BHalf*>(packed_->memory.data());
}

void HalfPanels::share(const HalfPanels& other) {
  if (inputs_ == other.inputs_ && outputs_ == other.outputs_ && transposed_ == other.transposed_)
    packed_ = other.packed_;
}

void HalfPanels::pack(const float* w) const {
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && inputs_ * outputs_ >= kParallelElems)
  for (std::int64_t panel = 0; panel < panel_parts(outputs_, kColumns); ++panel) pack_panel(panel, w);
}

// The format of a panel is (inputs / 2, 32, 2).
void HalfPanels::pack_panel(std::int64_t panel, const float* w) const {
  const std::int64_t padded = panel_depth(inputs_), first = panel * kColumns;
  const std::int64_t columns = std::min(kColumns, outputs_ - first);
  BHalf* to = static_cast<BHalf*>(packed_->memory.data()) + panel * padded * kColumns;
  if (inputs_ < padded || columns < kColumns) std::fill_n(to, padded * kColumns, BHalf{0});
  if (transposed_)
    pack_columns(w + first * inputs_, columns, to);
  else
    pack_rows(w + first, columns, to);
}

void HalfPanels::pack_rows(const float* w, std::int64_t columns, BHalf* to) const {
  static constexpr std::array<float, kColumns> kZeros{};
  for (std::int64_t k = 0; k < inputs_; k += 2, to += 2 * kColumns) {
    const float *even = w + k * outputs_, *odd = k + 1 < inputs_ ? even + outputs_ : kZeros.data();
    for (const float* row : {even, odd})
      for (std::int64_t c = 0; c < columns; c += kLine) __builtin_prefetch(row + kAhead * outputs_ + c);
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) put_pair(even[c], odd[c], to + 2 * c);
  }
}

void HalfPanels::pack_columns(const float* w, std::int64_t columns, BHalf* to) const {
  for (std::int64_t begin = 0; begin < inputs_; begin += kPanelInputs) {
    const std::int64_t end = std::min(inputs_, begin + kPanelInputs);
    for (std::int64_t c = 0; c < columns; ++c) {
      const float* column = w + c * inputs_;
      __builtin_prefetch(column + begin + 4 * kLine);
      for (std::int64_t k = begin; k < end; k += 2)
        put_pair(column[k], k + 1 < end ? column[k + 1] : 0.0f, to + (k / 2 * kColumns + c) * 2);
    }
  }
}

}  // namespace echelon::inline device::onednn
