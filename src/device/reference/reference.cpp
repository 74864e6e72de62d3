// SPDX-License-Identifier: Apache-2.0
#include "device/reference/reference.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "device/host_device.hpp"
#include "device/host_update.hpp"
#include "device/reference/ops.hpp"

namespace echelon::inline device {
namespace {

class ReferenceDevice final : public HostDevice {
 public:
  using HostDevice::HostDevice;

  std::string_view name() const override { return "reference"; }
  std::string describe() const override { return fmt::format("{}, plain loops, 1 thread", cpu_name()); }
  bool supports(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64; }

  LayoutWish layouts(const OpSpec& spec) const override {
    return spec.kind == OpKind::reorder ? LayoutWish{spec.layouts} : LayoutWish{};
  }

  std::unique_ptr<Op> make(const OpSpec& spec) override {
    ECHELON_CHECK(supports(spec.dtype), "the reference device has no {}", spec.text());
    for (Layout layout : spec.layouts)
      ECHELON_CHECK(layout == Layout::plain || spec.kind == OpKind::reorder, "{} needs plain tensors", spec.text());
    (void)signature(spec);  // refuses dims that no op has
    switch (spec.kind) {
#define X(kind) case OpKind::kind:
#define F(family, family_dims, kinds) kinds return reference::make_##family(spec);
      ECHELON_OP_FAMILIES(F)
#undef F
#undef X
    }
    reference::not_of_family(spec);
  }

  std::unique_ptr<Update> make_update(std::string_view rule, DType dtype) override {
    return make_host_update(rule, dtype, 1);
  }
};

}  // namespace

std::unique_ptr<Device> make_reference_device(const DeviceOptions& options) {
  return std::make_unique<ReferenceDevice>(options);
}

}  // namespace echelon::inline device
