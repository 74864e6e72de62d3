// Messages that are checked on arrival (exchange.check_messages), around any transport: each carries, after its
// content, 8 bytes: a CRC-32C of the content and of its number, and its number among the messages of its sender with
// its tag. All ranks wrap or none does.
//
// A message whose CRC differs, or that comes where another one was due, so that one was lost, is a MessageError of the
// `test` that would have completed it. Where receives from any rank are posted on a tag, a loss shows once those that
// were posted before the one that took a later message are done. After a receive was cancelled, numbers of its sender
// and tag are not compared. A lost message that no other of its sender and tag follows is a wait without end.
//
// Not covered, and so not offered: the library's all-reduce, and shared memory, in whose place messages are sent
// (`share` gives null). Copies between GPUs do not pass here.
//
// Cost: a copy of each message on both sides with its CRC (8 bytes in 3 cycles), buffers of the messages under way,
// which are kept and used again. Counters count the content alone.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

// A message that arrived damaged, or after one that is missing (exit 3).
struct MessageError : EnvironmentError {
  using EnvironmentError::EnvironmentError;
};

// Transports that are split from it check their messages too. Threads as for `inner`.
std::unique_ptr<Transport> make_checked(std::unique_ptr<Transport> inner);

}  // namespace echelon::inline comm
