// SPDX-License-Identifier: Apache-2.0
// Shards on a disk of each host (data.stage): the first rank of a host copies those that the ranks of the host read.
#pragma once

#include <memory>

#include "comm/group.hpp"
#include "config/schema.hpp"
#include "data/stage_folder.hpp"
#include "job/launch.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

// Makes the shards of `plan` be read from their copies. Shards for which there was not enough room are read in place,
// with a warning. `replica`: the one whose samples this rank reads (RankGroups::replica). Logs on rank 0 what was
// copied. The copies exist as long as the returned object, which is null if data.stage is empty and on ranks that copy
// nothing.
//
// Collective, blocking; all hosts copy one file at a time in step, so that no wait is longer than the copy of a file.
// Throws CommonError: EnvironmentError and DataError of StageFolder.
std::unique_ptr<StageFolder> stage_data(const DataConfig& config, RunPlan& plan, int replica, const HostSlot& slot,
                                        Group& group);

}  // namespace echelon::inline run
