// SPDX-License-Identifier: Apache-2.0
// run.replay: an attempt whose asynchronous servers take up what comes in the order of an earlier attempt, and whose
// replicas meet after the same numbers of steps: the same weights bit for bit, whatever the timing and the transport.
//
// A recording that does not reach the end of its run (stopped, killed, files cut off) is repeated up to the last
// meeting that all its files hold; there the attempt stops with a checkpoint, as if asked to by a signal. An attempt
// that resumes it goes on by the recording that begins at its step.
#pragma once

#include <string>
#include <vector>

#include "comm/group.hpp"
#include "config/roles.hpp"
#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "exchange/asynchronous/ledger_file.hpp"
#include "train/control/script.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

// The part of one rank.
struct RunReplay {
  std::string attempt;                // folder that was recorded; "": there is no replay
  LedgerHeader header;                // of one of its files
  MeetingScript script;               // of this rank
  std::vector<LedgerBytes> recorded;  // by bucket; empty where this rank serves nothing
  std::string told;                   // text for the log

  bool is_on() const { return !attempt.empty(); }
  // ConfigError unless the attempt begins with the weights of the recorded one.
  void check_weights(const Arenas& arenas) const;
};

// The file of a rank's order of arrivals in an attempt: <attempt>/arrivals-0002.bin.
std::string arrivals_path(const std::string& attempt, int rank);

// Opens the recording that config.run.replay names: the folder of an attempt, or of a run, whose newest attempt from
// the first step of this one counts. Collective; every rank reads the files of all. CommonError on all ranks:
// ConfigError if there is no such recording, or if this run differs from it in keys, ranks, data or length (with all
// that differ); DataError for files that are missing or damaged.
RunReplay open_replay(const Config& config, const RunPlan& plan, const Roles& roles, Group& group);
// Returns its text, for `echelon check`, with the same refusals; "" without a replay.
std::string foresee_replay(const Config& config, const RunPlan& plan, const Roles& roles);

}  // namespace echelon::inline run
