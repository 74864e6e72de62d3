// A slower network around any transport ([network]): groups of ranks are hosts, each with a card that limits what its
// ranks send to other hosts and what they receive from them, both ways at once; messages inside a host pass as they
// are. No privilege and no network namespace is needed, and the network below must be faster.
//
// The arithmetic is that of network_card.hpp. A message is handed on at once, with a short one beside it that says when
// it begins to leave; its receiver holds it back until that time, the delay and its own card allow. So neither side has
// to wake at an exact moment for a card to be used fully: a rank that looks late sees its message late, and the card's
// time is not lost. A send is complete once all but 64 KiB of it have passed both cards, which the kernel takes of a
// connection (mpi/tcp_settings.hpp; the receiver answers when that will be), from a copy of it: whether its receive is
// posted matters only for a message that is longer than 320 KiB, which begins to arrive no earlier, as there.
//
// Where the two ranks are on one machine, times are compared on its clock; between machines a message leaves when it
// has come and its wait for the card has passed.
//
// `wakes_at_s` is when the next message may be passed on: an engine sleeps until then, never polls without a pause, and
// goes on while a copy is on its way. The end of a transport waits up to 2 s for its copies. Counters count what is
// sent, not its headers; card rates go by the slower network. There is no library all-reduce (its messages are not
// seen), and memory is shared inside a host. A receive that is cancelled may leave a time behind, which a later message
// of its sender and tag takes for its own.
#pragma once

#include <memory>

#include "comm/network_shape.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

// Collective and blocking; all ranks give the same shape. The cards of hosts with several ranks are in memory that
// these share: EnvironmentError where they are on several machines, or the system provides none. Transports that are
// split from it share its cards. `clock`: of all times, and outlives it; null: that of `inner`.
std::unique_ptr<Transport> make_shaped(std::unique_ptr<Transport> inner, const NetworkShape& shape,
                                       const Clock* clock = nullptr);

}  // namespace echelon::inline comm
