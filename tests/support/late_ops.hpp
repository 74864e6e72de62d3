// What is done late on a stream of a stand-in for a card: vector operations and updates by the host's own, copies,
// events, readings of the clock, copies beside the ops.
#pragma once

#include <functional>
#include <memory>

#include "device/device.hpp"
#include "tests/support/late_streams.hpp"

namespace echelon::test {

inline constexpr int kOpStream = 0;

// From an address of the device to memory that the host can use; null stays null.
using Near = std::function<std::byte*(const void* address)>;

std::unique_ptr<VectorOps> make_late_vector_ops(std::shared_ptr<LateStreams> streams, Near near);
std::unique_ptr<Update> make_late_update(std::shared_ptr<LateStreams> streams, Near near,
                                         std::unique_ptr<Update> update);
std::unique_ptr<Event> record_late_event(std::shared_ptr<LateStreams> streams);
std::unique_ptr<DeviceTimer> make_late_timer(std::shared_ptr<LateStreams> streams);
std::unique_ptr<CopyQueue> make_late_copy_queue(std::shared_ptr<LateStreams> streams, Near near, std::size_t slots);

// A copy without waiting takes host memory of allocate_host alone: what a card copies of other memory is copied before
// the call returns, or slowly. It is freed once the streams have ended, as a card's is. Of all stand-ins of this
// process.
Memory pinned(std::shared_ptr<LateStreams> streams, Memory host);
void check_pinned(const void* address, std::size_t bytes);

}  // namespace echelon::test
