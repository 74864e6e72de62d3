// SPDX-License-Identifier: Apache-2.0
// Objects that run beside the compute stream or mark points of it: events, readings of the card's clock, copies from
// the host (device/device.hpp, device_timer.hpp, copy_queue.hpp).
#pragma once

#include <memory>

#include "cuda/context.hpp"

namespace echelon::cuda {

// Marks all work enqueued on the stream so far. The event may outlive the context.
std::unique_ptr<Event> record_event(const Context& context);
std::unique_ptr<DeviceTimer> make_timer(const Context& context);
std::unique_ptr<CopyQueue> make_copy_queue(const Context& context, std::size_t slots);

}  // namespace echelon::cuda
