// SPDX-License-Identifier: Apache-2.0
// The channels of an attempt (comm/engine.hpp), equal on all ranks.
#pragma once

#include "train/control/control.hpp"
#include "train/draw_queue.hpp"

namespace echelon::inline run {

// Channels of the world, and of groups of ranks with one role.
inline constexpr int kControlChannel = 0;       // agreement, evaluation, metrics, traces
inline constexpr int kWeightsChannel = 1;       // the first broadcast
inline constexpr int kSumsChannel = 2;          // synchronised batch norm
inline constexpr int kControlWordsChannel = 3;  // and the next Control::kChannels
inline constexpr int kDrawsChannel = kControlWordsChannel + Control::kChannels;  // and the next DrawQueue::kChannels
inline constexpr int kStrategyChannel = kDrawsChannel + DrawQueue::kChannels;    // this one and all behind it

// Channels of the ranks of one replica, and of the shards of a stage.
inline constexpr int kPartsChannel = 0;    // checkpoints of a split model
inline constexpr int kNormsChannel = 1;    // norms of a split model
inline constexpr int kReplicaChannel = 2;  // when the ranks come to meetings, and what they evaluate by themselves
inline constexpr int kCutsChannel = 3;     // this one and all behind it: activations

}  // namespace echelon::inline run
