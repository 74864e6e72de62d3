// SPDX-License-Identifier: Apache-2.0
// Finds the host whose link a run waits for, from its ranks' message statistics (peer_times.hpp).
//
//   seconds   of a link: the largest value of any receiving rank of the sum over its senders of min(wait, transit). A
//             wait beyond the transit is for a peer that has nothing to send; a transit beyond the wait means that the
//             receiver is late
//   slow      at least half of the largest number of seconds per byte of any link
//
// A link is one direction between two hosts; only links with at least a tenth of the busiest link's bytes count. The
// first of these rules that applies names a host or a pair of hosts:
//
//   1. all links of one or more hosts are slow, and at most a fifth of the slow links' seconds are elsewhere
//   2. nothing but the link of one pair is slow, in one direction or in both
//   3. all links in one direction of a host are slow, and no others
//   4. without the links of one host the longest wait would be at most half as long, and at most two thirds as long as
//      without those of any other host. This finds a host of which some links seem fast: the burst of a card that idles
//      in one direction lets messages through at once, and the longest waits per byte may be for messages that queue
//      behind others in the same card
//
//   5. the links of one host hold at least 0.7 of all seconds, and 1.5 times those of any other host, although they are
//      at most 0.6 of the links. Sums of waits and transits exceed what single messages waited where ranks are early at
//      one step and late at the next, so that some other link may seem slow, too
//
// Nothing is named if all links are slow, or if no rank waits for at least a fifth of a step.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline comm {

struct LinkWaits {
  std::vector<int> hosts = {};               // by rank
  std::vector<std::string> host_names = {};  // by host
  // [to * ranks + from], per step: how long rank `to` waited for messages from rank `from`, their transit, their bytes.
  std::vector<double> waited_s = {}, transit_s = {}, bytes = {};
};

// Returns "the link of host h3 limits the exchange: ranks wait up to 1.2 s a step for messages to and from h3, up to 50
// ms for those between others", or "" if no link is to blame.
std::string limiting_link(const LinkWaits& waits, double step_s);

}  // namespace echelon::inline comm
