// SPDX-License-Identifier: Apache-2.0
// The layouts in which a device's op is checked.
#pragma once

#include <vector>

#include "device/device.hpp"
#include "device/op_spec.hpp"

namespace echelon::verify {

// Returns the spec in plain layouts, and in all layouts that the device prefers when inputs have one of its layouts.
std::vector<OpSpec> variants(const Device& device, const OpSpec& spec);

}  // namespace echelon::verify
