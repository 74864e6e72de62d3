// In which layouts a device's op is to be checked.
#pragma once

#include <vector>

#include "device/device.hpp"
#include "device/op_spec.hpp"

namespace echelon::verify {

// The spec in plain layouts, and in all that the device wishes for where its inputs come in one of its own layouts.
std::vector<OpSpec> variants(const Device& device, const OpSpec& spec);

}  // namespace echelon::verify
