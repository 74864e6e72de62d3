// SPDX-License-Identifier: Apache-2.0
// Every rule of update_rules/list.hpp as one loop over host memory.
#pragma once

#include <memory>
#include <string_view>

#include "device/device.hpp"

namespace echelon::inline device {

// `dtype` is f32 or f64. Each element is computed independently, so `threads` does not change a bit. Throws ConfigError
// with the nearest known rule for an unknown one.
std::unique_ptr<Update> make_host_update(std::string_view rule, DType dtype, int threads);

}  // namespace echelon::inline device
