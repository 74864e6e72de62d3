#include "device/onednn/half_panels.hpp"

#include <algorithm>
#include <array>

#include "device/onednn/panel_kernel.hpp"
#include "device/onednn/planes.hpp"

namespace echelon::inline device::onednn {
namespace {

constexpr std::int64_t kColumns = kPanels512.columns;

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

// (inputs / 2, 32, 2)
void HalfPanels::pack_panel(std::int64_t panel, const float* w) const {
  const std::int64_t padded = panel_depth(inputs_), first = panel * kColumns;
  const std::int64_t columns = std::min(kColumns, outputs_ - first);
  BHalf* to = static_cast<BHalf*>(packed_->memory.data()) + panel * padded * kColumns;
  const std::int64_t along = transposed_ ? 1 : outputs_, across = transposed_ ? inputs_ : 1;
  for (std::int64_t k = 0; k < padded; ++k) {
    std::array<float, kColumns> row{};
    std::array<BHalf, kColumns> rounded;
    for (std::int64_t c = 0; c < columns && k < inputs_; ++c) row[c] = w[k * along + (first + c) * across];
    round_halves(row.data(), rounded.data(), kColumns, 1);
    for (std::int64_t c = 0; c < kColumns; ++c) to[(k / 2 * kColumns + c) * 2 + k % 2] = rounded[c];
  }
}

}  // namespace echelon::inline device::onednn
