// SPDX-License-Identifier: Apache-2.0
// The meetings of an earlier run, by which a replay meets (run/replay.hpp): no message calls them, so that each replica
// comes to each meeting after as many steps as in that run, whatever the timing.
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline train {

struct ScriptedMeeting {
  std::int64_t steps = 0;     // that this rank trained before it, since the attempt began
  std::uint32_t reasons = 0;  // MeetingReason
};
// The meetings in their order; empty: meetings are called.
using MeetingScript = std::vector<ScriptedMeeting>;

}  // namespace echelon::inline train
