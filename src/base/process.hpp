// SPDX-License-Identifier: Apache-2.0
// Identifies this process, so that other processes of the host can detect that it has ended (lock files: job/run_lock).
// Callable from any thread; nothing throws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline base {

// The name of this machine, at most 255 characters.
std::string host_name();

// Resident memory of this process now, in MiB; 0 if /proc does not show it. Costs one small read.
double resident_mb();

// Identifies this process by its PID, and by the boot and PID namespace in which that number is unique. One line, "4711
// <boot id> <namespace>", with "-" for values that /proc does not show. Unique on one host until it reboots.
std::string process_id_text();

// Whether `id`, a process_id_text, was written since the last boot of this host and in this PID namespace, so that
// is_gone can decide. It does not matter whether the process still runs.
bool is_near(const std::string& id);
// True only if `id` is near and its process no longer exists. False if the process exists (even as a zombie), if it
// runs on another host, in another PID namespace or before the last boot, and if `id` is not a process_id_text. Costs
// one kill(pid, 0). A later process with the same PID makes it false.
bool is_gone(const std::string& id);
// Returns when the process started, in clock ticks since the host's boot; 0 if it is not near or no longer exists.
std::uint64_t start_ticks(const std::string& id);
// Kills the process (SIGKILL) if it is near and started at this time, > 0: a process that reused its PID is not hit.
void kill_process(const std::string& id, std::uint64_t started_ticks);
// True only if `id` is near and its process is stopped by a signal or a debugger (/proc/PID/stat: T, t).
bool is_stopped(const std::string& id);
// Lists stopped children of this process's parent (ranks of a launcher on this host) in the order of PIDs: "rank 3 (PID
// 4711)" if the environment tells the rank, else "PID 4711". Reads all of /proc.
std::vector<std::string> stopped_siblings();
// Sends SIGCONT to them.
void continue_siblings();

}  // namespace echelon::inline base
