// SPDX-License-Identifier: Apache-2.0
// Wraps any transport so that messages are checked on arrival (exchange.check_messages). Each message carries 8 bytes
// after its content: its sequence number among the messages with the same sender and tag, and a CRC-32C of the content
// and of that number. Either all ranks wrap their transports or none does.
//
// If a message has a wrong CRC, or arrives where an earlier one was due (which was therefore lost), the `test` call
// that would have completed it throws MessageError. Where a tag has receives from any rank, a loss is reported once all
// receives that were posted before the one that took the later message are done. After a receive was cancelled, the
// numbers of its sender and tag are no longer compared. If the last message of a sender and tag is lost, its receiver
// waits for ever.
//
// The library's all-reduce cannot be covered and is not offered, nor is shared memory: `share` returns null, and
// messages are sent instead. Copies between GPUs do not go through this transport.
//
// Cost: each side copies every message and computes its CRC (8 bytes in 3 cycles), and keeps buffers for the messages
// in flight, which are reused. Counters count the content only.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

// Thrown for a message that arrived damaged, or that follows a missing one (exit 3).
struct MessageError : EnvironmentError {
  using EnvironmentError::EnvironmentError;
};

// Transports that are split from the result check their messages too. The threading rules are those of `inner`.
std::unique_ptr<Transport> make_checked(std::unique_ptr<Transport> inner);

}  // namespace echelon::inline comm
