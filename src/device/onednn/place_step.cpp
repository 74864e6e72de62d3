// SPDX-License-Identifier: Apache-2.0
// Puts the rows of one step at their place in sequences.
#include <algorithm>

#include "device/onednn/ops.hpp"

namespace echelon::inline device::onednn {
namespace {

class PlaceStepOp final : public Op {
 public:
  explicit PlaceStepOp(const OpSpec& spec) : d_(std::get<PlaceStepDims>(spec.dims)) {}
  std::string implementation() const override { return "copy"; }
  void run(const OpArgs& args) override {
    const auto* x = static_cast<const float*>(args.tensors[0]);
    const auto* lengths = d_.lengths ? static_cast<const std::int32_t*>(args.tensors[1]) : nullptr;
    float* y = static_cast<float*>(args.tensors[d_.lengths ? 2 : 1]) + d_.t * d_.F;
    for (std::int64_t n = 0; n < d_.N; ++n)
      if (!lengths || d_.first + d_.t < lengths[n])
        std::copy_n(x + n * d_.F, d_.F, y + n * d_.T * d_.F);
      else
        std::fill_n(y + n * d_.T * d_.F, d_.F, 0.0f);
  }

 private:
  PlaceStepDims d_;
};

}  // namespace

std::unique_ptr<Op> make_place_step(Context&, const OpSpec& spec) { return std::make_unique<PlaceStepOp>(spec); }

}  // namespace echelon::inline device::onednn
