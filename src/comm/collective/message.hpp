// SPDX-License-Identifier: Apache-2.0
// Messages sent directly from one rank to another, without a tree. The two ends submit their plans on one channel with
// one dtype. If there are no elements, there is no step and no message.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collective/plan.hpp"

namespace echelon::inline comm {

std::shared_ptr<const Plan> make_send_to(int peer, std::int64_t elems);
std::shared_ptr<const Plan> make_receive_from(int peer, std::int64_t elems);
// All ranks send to rank 0, whose buffer receives the elements of rank r in ranges[r] (its own are there already); the
// buffer of any other rank holds its own elements only. Ranges may be empty; all ranks give the same ranges. Rank 0
// receives k-1 messages.
std::shared_ptr<const Plan> make_gather_to_first(int rank, const std::vector<ElemRange>& ranges);

}  // namespace echelon::inline comm
