// SPDX-License-Identifier: Apache-2.0
// A transport over some of the ranks of another one, which each of them makes without a message, since the other ranks
// may be lost. The survivors of a run go on with it, and a run that may lose ranks uses it from the start, because
// groups of the message library itself (a communicator, its collectives) cannot be made or freed once a rank is gone.
//
// Parts of one transport use distinct tags: tag + space * kTagsOfPart, where two parts that have a rank in common must
// have different spaces. `split` exchanges three numbers between all members. There is no library all-reduce and no
// shared memory. Counters cover this part only.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport.hpp"

namespace echelon::inline comm {

// Open MPI over UCX has tags of 23 bits, which allow 1024 spaces. Any tag beyond the range of a part is an
// EnvironmentError.
inline constexpr int kTagsOfPart = 1 << 13, kSpaces = 1 << 10;

// `members`: ranks of `whole`, ascending, including the calling rank; they become ranks 0, 1, .. of the part. All
// members give the same list and `space`; splits take the spaces behind it. Tags of space 0 are those of `whole`. Only
// one part at a time may drive `whole`. A check fails if this rank is not a member.
std::unique_ptr<Transport> make_part_transport(std::shared_ptr<Transport> whole, std::vector<int> members,
                                               int space = 0);

}  // namespace echelon::inline comm
