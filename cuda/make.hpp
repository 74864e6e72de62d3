// SPDX-License-Identifier: Apache-2.0
// The makers of the CUDA device's ops, from specs whose arguments have been checked.
#pragma once

#include <memory>
#include <string_view>

#include "cuda/context.hpp"
#include "device/device_codec.hpp"
#include "device/op.hpp"
#include "device/update_rules/rule.hpp"
#include "device/vector.hpp"

namespace echelon::inline device {
class Update;
}

namespace echelon::cuda {

// make_conv(context, spec), make_pool(context, spec), ..: one for each family of device/ops/list.hpp. The context must
// outlive the op.
#define F(family, family_dims, kinds) std::unique_ptr<Op> make_##family(const Context& context, const OpSpec& spec);
ECHELON_OP_FAMILIES(F)
#undef F

std::unique_ptr<Update> make_update(const Context& context, std::string_view rule, DType dtype);
std::unique_ptr<VectorOps> make_vector_ops(const Context& context);
std::unique_ptr<DeviceCodec> make_codec(const Context& context, const DeviceCodecSpec& spec);

}  // namespace echelon::cuda
