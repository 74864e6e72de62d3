// A transport over some of the ranks of another one, made by each of them without any message: the other ranks may be
// lost. What survivors of a run go on with, and what a run that may lose ranks uses from the start, because groups of
// the message library itself (a communicator, its collectives) cannot be made or freed once a rank is gone.
//
// Parts over one transport have tags of their own: tag + space * kTagsOfPart, where no two parts that have a rank in
// common have the same space. `split` exchanges three numbers between all members. There is no library all-reduce and
// no shared memory. Counters are of this part alone.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport.hpp"

namespace echelon::inline comm {

// Open MPI over UCX has tags of 23 bits: 1024 spaces. A higher tag than a part has is an EnvironmentError.
inline constexpr int kTagsOfPart = 1 << 13, kSpaces = 1 << 10;

// `members`: ranks of `whole`, ascending, the calling rank among them; they become ranks 0, 1, .. of the part. All
// members give the same list and `space`; splits take the spaces behind it. Tags of space 0 are those of `whole`.
// `whole` is driven through one part at a time. A failed check where this rank is no member.
std::unique_ptr<Transport> make_part_transport(std::shared_ptr<Transport> whole, std::vector<int> members,
                                               int space = 0);

}  // namespace echelon::inline comm
