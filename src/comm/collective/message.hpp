// Messages straight from one rank to another, without a tree: the plans of the two ends, submitted on one channel with
// one dtype. No elements: no step and no message.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collective/plan.hpp"

namespace echelon::inline comm {

std::shared_ptr<const Plan> make_send_to(int peer, std::int64_t elems);
std::shared_ptr<const Plan> make_receive_from(int peer, std::int64_t elems);
// From every rank to rank 0, whose buffer has that of rank r in places[r] (its own is there already); the buffers of
// other ranks hold theirs alone. Places may be empty; all ranks give the same. At rank 0 k-1 messages arrive.
std::shared_ptr<const Plan> make_gather_to_first(int rank, const std::vector<ElemRange>& places);

}  // namespace echelon::inline comm
