// One message of `elems` from one rank to one other: the plans of the two ends, submitted on one channel with one
// dtype. No elements: no step and no message.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/collective/plan.hpp"

namespace echelon::inline comm {

std::shared_ptr<const Plan> make_send_to(int peer, std::int64_t elems);
std::shared_ptr<const Plan> make_receive_from(int peer, std::int64_t elems);

}  // namespace echelon::inline comm
