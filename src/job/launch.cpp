// SPDX-License-Identifier: Apache-2.0
#include "job/launch.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/cores.hpp"
#include "base/cpu_time.hpp"
#include "base/error.hpp"
#include "base/launchers.hpp"
#include "base/limits.hpp"
#include "base/peak_memory.hpp"
#include "base/process.hpp"
#include "base/processor.hpp"
#include "base/text.hpp"
#include "comm/mpi/library.hpp"
#include "model/device_options.hpp"

namespace echelon::inline job {
namespace {

// Polls of an idle OpenMP thread before it sleeps, a few microseconds. The digits model on 2 threads of one rank:
// 48,000 samples/s without, 120,000 with (as many as with an endless spin, which would starve the engine's thread).
constexpr const char* kSpins = "1000";
constexpr const char* kRestarted = "ECHELON_RESTARTED";  // set in the restarted process

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::vector<std::string> words_of_this_process() {
  std::vector<std::string> words;
  std::istringstream all(read_file_whole("/proc/self/cmdline"));
  for (std::string word; std::getline(all, word, '\0');) words.push_back(word);
  return words;
}

void require_cpu() {
  const std::string_view missing = missing_instructions();
  if (missing.empty()) return;
  throw EnvironmentError(fmt::format(
      "this CPU lacks {}, which this build of echelon needs; build it on this machine with `make MARCH=native`, "
      "or use a newer node",
      missing));
}

// Threads of the engine, of MPI and of a run, and a share of the cores.
int threads_of_rank() {
  constexpr int kHelpers = 10;
  const LauncherTraits* launcher = launcher_of_process();
  const std::int64_t ranks =  // on this host, as far as the launcher tells
      launcher == nullptr ? 0 : told_number(launcher->local_ranks, "the number of ranks on this host");
  return kHelpers + usable_cores() / static_cast<int>(std::max<std::int64_t>(ranks, 1));
}

}  // namespace

void prepare_process() {
  require_cpu();
  if (!is_set(kRestarted)) require_limits(threads_of_rank());
  std::vector<std::string> words = words_of_this_process();
  if (is_set(kRestarted) && !words.empty())  // otherwise top, ps and pkill would show it as "exe"
    ::prctl(PR_SET_NAME, std::filesystem::path(words.front()).filename().c_str());
  set_mpi_defaults();
  if (is_set("OMP_WAIT_POLICY") || is_set(kRestarted)) return;
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  ::setenv("GOMP_SPINCOUNT", kSpins, 0);
  ::setenv(kRestarted, "1", 1);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv("/proc/self/exe", argv.data());
  ::unsetenv(kRestarted);  // execv failed: the run continues, slower
}

bool under_launcher() {
  const LauncherTraits* launcher = launcher_of_process();
  return launcher != nullptr && connects_ranks(*launcher);
}

const char* rank_in_environment() {
  if (const LauncherTraits* launcher = launcher_of_process()) return std::getenv(launcher->rank);
  return std::getenv("SLURM_PROCID");
}

std::string rank_text() {
  const char* rank = rank_in_environment();
  return rank != nullptr ? fmt::format("rank {}", rank) : "this process";
}

HostSlot host_slot_of(const Transport& transport) {
  const std::vector<int>& hosts = transport.hosts();
  HostSlot slot;
  slot.rank = transport.rank();
  slot.ranks = transport.size();
  const int host = hosts[static_cast<std::size_t>(slot.rank)];
  slot.hosts = 1 + *std::max_element(hosts.begin(), hosts.end());
  const std::vector<int>& machines = transport.machines();
  slot.machine = machines[static_cast<std::size_t>(slot.rank)];
  slot.local_ranks = static_cast<int>(std::count(machines.begin(), machines.end(), slot.machine));
  slot.local_rank = static_cast<int>(std::count(machines.begin(), machines.begin() + slot.rank, slot.machine));
  slot.host = transport.host_names()[static_cast<std::size_t>(host)];
  return slot;
}

int threads_of(const DeviceConfig& config, const HostSlot& slot) {
  if (config.threads > 0) return static_cast<int>(config.threads);
  return std::clamp(usable_cores() / slot.local_ranks, 1, openmp_threads_at_most());
}

int gpu_index(const HostSlot& slot, int visible, std::string* warning) {
  if (visible <= 0) return 0;
  // If a launcher shows each task a GPU of its own, there is no choice; one GPU seen by all tasks is shared.
  if (warning && slot.local_rank == 0) {
    if (visible > slot.local_ranks)
      *warning =
          fmt::format("{} of {} GPUs on {} {} idle: that host has only {}", visible - slot.local_ranks, visible,
                      slot.host, visible - slot.local_ranks == 1 ? "stays" : "stay", counted(slot.local_ranks, "rank"));
    if (visible > 1 && visible < slot.local_ranks)
      *warning = fmt::format("{} ranks share {} GPUs on {}", slot.local_ranks, visible, slot.host);
    if (visible == 1 && slot.local_ranks > 1)
      *warning = fmt::format("{} ranks on {} each see one GPU: if it is the same one, they share it", slot.local_ranks,
                             slot.host);
  }
  return slot.local_rank % visible;
}

DeviceConfig device_on(const DeviceConfig& config, const HostSlot& slot) {
  DeviceConfig own = config;
  if (!own.kinds.empty())
    own.kind = own.kinds[std::min(own.kinds.size() - 1, static_cast<std::size_t>(slot.local_rank))];
  return own;
}

DeviceOptions device_options(const DeviceConfig& config, const HostSlot& slot, std::string* warning) {
  DeviceOptions options = device_options(config, threads_of(config, slot));
  const std::string kind = device_on(config, slot).kind;
  if (kind == "cuda" || kind == "auto")
    options.index = gpu_index(slot, visible_gpus(), config.kinds.empty() ? warning : nullptr);
  return options;
}

namespace {

double since_process_start_s() {
  // Field 22 of /proc/self/stat: start in ticks after boot. The name in field 2 may contain spaces, so fields are
  // counted after ')'.
  const std::string stat = read_file_whole("/proc/self/stat");
  std::istringstream rest(stat.substr(stat.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= 22; ++i) rest >> field;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double start_s = std::atof(field.c_str()) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - start_s;
}

double before_run_s = 0;  // lifetime of this process before its newest run

}  // namespace

void begin_run() {
  before_run_s = since_process_start_s();
  begin_cpu_time();
  begin_peak_memory();
}

double since_run_start_s() { return since_process_start_s() - before_run_s; }

std::string command_line() {
  std::string line;
  for (const std::string& word : words_of_this_process()) {
    if (!line.empty()) line += ' ';
    const bool plain = !word.empty() && word.find_first_of(" \t\n\"'$\\*?;&|<>()") == std::string::npos;
    line += plain ? word : "'" + word + "'";
  }
  return line;
}

std::string job_id() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"})
    if (const char* id = std::getenv(name)) return id;
  return "";
}

bool slurm_job_without_gpus() {
  if (!is_set("SLURM_JOB_ID")) return false;
  const auto names = {"SLURM_GPUS",          "SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_TASK",
                      "SLURM_GPUS_PER_NODE", "SLURM_JOB_GPUS",     "SLURM_STEP_GPUS"};
  return std::none_of(names.begin(), names.end(), is_set);
}

std::string now_utc_text() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }
std::string now_utc_minute_text() { return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(std::time(nullptr))); }

}  // namespace echelon::inline job
