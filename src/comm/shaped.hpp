// SPDX-License-Identifier: Apache-2.0
// Simulates a slower network around any transport ([network]): groups of ranks are hosts, each with a card that limits
// what its ranks send to other hosts and receive from them, in both directions independently; messages inside a host
// are not slowed down. It needs no privilege and no network namespace; the real network must be faster.
//
// network_card.hpp defines the arithmetic. A message is handed on at once, with a short one beside it that states when
// it begins to leave; its receiver holds it back until that time, the delay and its own card allow. So no side has to
// wake at an exact moment to use a card fully: a rank that looks late sees its message late, but the card's time is not
// lost. A send is complete once all but 64 KiB of it, which the kernel buffers per connection, have passed both cards
// (mpi/tcp_settings.hpp; the receiver answers when that will be). It is sent from a copy: whether its receive is posted
// matters only for a message longer than 320 KiB, which does not begin to arrive before that, as over TCP.
//
// Times are compared on the clock of the machine if the two ranks share one; between machines a message leaves when it
// has arrived and its wait for the card has passed.
//
// `wakes_at_s` is the time at which the next message may be passed on: an engine sleeps until then, never polls without
// a pause, and goes on while a copy is in flight. The destructor of a transport waits up to 2 s for its copies.
// Counters count the messages without their headers; card rates are those of the slower network. There is no library
// all-reduce (its messages cannot be seen); memory is shared inside a host. A cancelled receive may leave a time
// message behind, which a later message of its sender and tag takes for its own.
#pragma once

#include <memory>

#include "comm/network_shape.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

// Collective and blocking; all ranks give the same shape. The cards of hosts with several ranks are in memory that
// these ranks share: EnvironmentError if they are on several machines, or if the system provides no such memory.
// Transports that are split from the result share its cards. All times are of `clock`, which outlives it; null: the
// clock of `inner`.
std::unique_ptr<Transport> make_shaped(std::unique_ptr<Transport> inner, const NetworkShape& shape,
                                       const Clock* clock = nullptr);

}  // namespace echelon::inline comm
