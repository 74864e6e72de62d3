// SPDX-License-Identifier: Apache-2.0
// A sequence of launches as a CUDA graph.
#pragma once

#include <functional>
#include <memory>

#include "cuda/context.hpp"

namespace echelon::cuda {

// Implements Device::record_ops on the context's stream.
std::unique_ptr<Recording> record_ops(const Context& context, const std::function<void()>& enqueue);

}  // namespace echelon::cuda
