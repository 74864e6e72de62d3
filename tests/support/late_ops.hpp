// SPDX-License-Identifier: Apache-2.0
// Work that happens late on a stream of a stand-in for a card: the host's vector operations and updates, copies,
// events, readings of the clock, and copies beside the ops.
#pragma once

#include <functional>
#include <memory>

#include "device/device.hpp"
#include "tests/support/late_streams.hpp"

namespace echelon::test {

inline constexpr int kOpStream = 0;

// Maps an address of the device to memory that the host can use; null stays null.
using Near = std::function<std::byte*(const void* address)>;

std::unique_ptr<VectorOps> make_late_vector_ops(std::shared_ptr<LateStreams> streams, Near near);
std::unique_ptr<Update> make_late_update(std::shared_ptr<LateStreams> streams, Near near,
                                         std::unique_ptr<Update> update);
std::unique_ptr<Event> record_late_event(std::shared_ptr<LateStreams> streams);
std::unique_ptr<DeviceTimer> make_late_timer(std::shared_ptr<LateStreams> streams);
std::unique_ptr<CopyQueue> make_late_copy_queue(std::shared_ptr<LateStreams> streams, Near near, std::size_t slots);

// Memory of allocate_host, the only host memory that a copy without waiting may take: a card copies other host memory
// before the call returns, or slowly. It is freed once the streams have ended, as on a card. check_pinned accepts such
// memory of all stand-ins of this process.
Memory pinned(std::shared_ptr<LateStreams> streams, Memory host);
void check_pinned(const void* address, std::size_t bytes);

}  // namespace echelon::test
