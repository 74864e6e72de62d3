// An identity of this process by which other processes of the host detect that it has ended (lock files: job/run_lock).
// Any thread; nothing throws.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline base {

// Variables in which launchers tell a process its rank.
inline constexpr std::array kRankVariables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
inline bool names_rank(std::string_view variable) {
  return std::find(kRankVariables.begin(), kRankVariables.end(), variable) != kRankVariables.end();
}

// Of this machine, at most 255 characters.
std::string host_name();

// Resident memory of this process now, MiB; 0 where /proc does not show it. One read of a few bytes.
double resident_mb();

// This process: its PID, and the boot and PID namespace in which that number is unique. One line, "4711 <boot id>
// <namespace>", with "-" for what /proc does not show. Unique on one host until it boots again.
std::string process_id_text();

// True where `id`, a process_id_text, was written since the last boot of this host in this PID namespace, so that
// is_gone can decide; whether the process still runs does not matter.
bool is_near(const std::string& id);
// True only where `id` is near and its process no longer exists. False where the process exists (a zombie does), where
// it runs on another host, in another PID namespace or before the last boot, and where `id` is no process_id_text. One
// kill(pid, 0). A later process with the same PID makes it false.
bool is_gone(const std::string& id);
// When the process was started, in clock ticks since the host's boot; 0 where it is not near or no longer exists.
std::uint64_t start_ticks(const std::string& id);
// Kills the process (SIGKILL), if it is near and was started at this time, > 0: not another one that got its PID.
void kill_process(const std::string& id, std::uint64_t started_ticks);
// True only where `id` is near and its process is stopped by a signal or a debugger (/proc/PID/stat: T, t).
bool is_stopped(const std::string& id);
// Processes of this one's parent (ranks of a launcher on this host) that are stopped, in order of PID: "rank 3 (PID
// 4711)" where its environment tells the rank, else "PID 4711". Reads all of /proc.
std::vector<std::string> stopped_siblings();
// Continues them (SIGCONT).
void continue_siblings();

}  // namespace echelon::inline base
