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
    ECHELON_CHECK(supports(spec.dtype), "{}", spec.text());
    for (Layout layout : spec.layouts)
      ECHELON_CHECK(layout == Layout::plain || spec.kind == OpKind::reorder, "{} wants plain tensors", spec.text());
    (void)signature(spec);  // refuses dims that no op has
    switch (spec.kind) {
      case OpKind::conv_forward:
      case OpKind::conv_backward_data:
      case OpKind::conv_backward_weights: return reference::make_conv(spec);
      case OpKind::pool_forward:
      case OpKind::pool_backward: return reference::make_pool(spec);
      case OpKind::dense_forward:
      case OpKind::dense_backward_data:
      case OpKind::dense_backward_weights: return reference::make_dense(spec);
      case OpKind::activation_forward:
      case OpKind::activation_backward: return reference::make_activation(spec);
      case OpKind::norm_moments:
      case OpKind::norm_normalise:
      case OpKind::norm_backward_sums:
      case OpKind::norm_backward_apply:
      case OpKind::norm_local_forward:
      case OpKind::norm_local_backward:
      case OpKind::norm_statistics:
      case OpKind::norm_inference:
      case OpKind::norm_renorm:
      case OpKind::norm_renorm_backward: return reference::make_norm(spec);
      case OpKind::loss_softmax_forward:
      case OpKind::loss_softmax_backward: return reference::make_softmax(spec);
      case OpKind::loss_softmax_part:
      case OpKind::loss_softmax_join:
      case OpKind::loss_softmax_part_backward: return reference::make_softmax_part(spec);
      case OpKind::dropout: return reference::make_dropout(spec);
      case OpKind::concat:
      case OpKind::slice: return reference::make_channels(spec);
      case OpKind::lrn_forward:
      case OpKind::lrn_backward: return reference::make_lrn(spec);
      case OpKind::layer_norm_forward:
      case OpKind::layer_norm_backward: return reference::make_layer_norm(spec);
      case OpKind::loss_values_forward:
      case OpKind::loss_values_backward: return reference::make_value_loss(spec);
      case OpKind::attention_forward:
      case OpKind::attention_backward: return reference::make_attention(spec);
      case OpKind::sequence_pool_forward:
      case OpKind::sequence_pool_backward: return reference::make_sequence_pool(spec);
      case OpKind::broadcast_add:
      case OpKind::sum_samples: return reference::make_broadcast(spec);
      case OpKind::rnn_forward:
      case OpKind::rnn_backward: return reference::make_rnn(spec);
      case OpKind::rnn_step_forward:
      case OpKind::rnn_step_backward: return reference::make_rnn_step(spec);
      case OpKind::place_step: return reference::make_place_step(spec);
      case OpKind::embedding_forward:
      case OpKind::embedding_backward: return reference::make_embedding(spec);
      case OpKind::add: return reference::make_elementwise(spec);
      case OpKind::reorder: return reference::make_reorder(spec);
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
