// Which host's link a run waits for, from what its ranks counted of their messages (peer_times.hpp).
//
//   of a link    seconds = for the rank that waits longest, the sum over its senders there of min(wait, transit): a
//                wait beyond the transit is for a peer that has nothing to send, a transit beyond the wait is that of a
//                receiver who is late
//   slow         half or more of the most seconds a byte of any link
//
// Links are those between two hosts, each way, with a tenth or more of the bytes of the busiest. A host is named where
// all of its links are slow, or all of those in one direction, and no more than a fifth of the slow links' seconds is
// elsewhere; else a pair of hosts where nothing is slow but its link. Nothing is named where all links are slow, and
// where no rank waits for at least a fifth of a step.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline comm {

struct LinkWaits {
  std::vector<int> hosts = {};               // by rank
  std::vector<std::string> host_names = {};  // by host
  // [to * ranks + from], a step: what rank `to` waited for messages from rank `from`, their transit, and their bytes.
  std::vector<double> waited_s = {}, transit_s = {}, bytes = {};
};

// "the link of host h3 limits the exchange: ranks wait up to 1.2 s a step for messages to and from h3, up to 50 ms for
// those between others"; "": no link is to blame.
std::string limiting_link(const LinkWaits& waits, double step_s);

}  // namespace echelon::inline comm
