// SPDX-License-Identifier: Apache-2.0
// The start of this process, and its share of the machine: CPU features, threads, GPU, launcher, job.
#pragma once

#include <string>

#include "comm/transport.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"

namespace echelon::inline job {

// Must come before anything else in a run. Refuses a CPU without the instructions that the program is compiled for
// (missing_instructions; EnvironmentError with the remedy). Sets defaults of MPI (comm/mpi/library.hpp). Executes the
// program again (execv, same PID) with OMP_WAIT_POLICY=passive and GOMP_SPINCOUNT=1000 unless they are set, because
// OpenMP reads them before main, and idle teams that spin slow down the engine's thread; in that case it does not
// return. If execv fails, the run continues, slower.
void prepare_process();

// Whether mpirun, or srun with PMI, started this process, judged by its environment; MPI need not be started.
bool under_launcher();
// The rank of this process in the launcher's environment (base/launchers.hpp), before MPI starts; null if it has none.
const char* rank_in_environment();
// "rank 3", or "this process" if the environment tells no rank.
std::string rank_text();
// The position of a rank on its host.
struct HostSlot {
  int rank = 0;
  int ranks = 1;
  int hosts = 1;
  int local_rank = 0;   // index among the ranks of its machine
  int local_ranks = 1;  // ranks on its machine
  std::string host;
  int machine = 0;  // index of the machine whose cores, GPUs and disks it shares; hosts may be groups of ranks
};
// The position of a rank among those of its host that share its cores and GPUs.
struct LocalPlace {
  int rank = 0, ranks = 1;
};
HostSlot host_slot_of(const Transport& transport);

// Returns device.threads, or the number of cores that this process may use divided by the ranks of its host; at least 1
// and at most the threads that OpenMP may start.
int threads_of(const DeviceConfig& config, const HostSlot& slot);
// Returns the GPU index of a rank: local_rank mod `visible`; 0 if none is visible. On the first rank of a host,
// `warning` gets a text if GPUs of the host are idle or shared.
int gpu_index(const HostSlot& slot, int visible, std::string* warning = nullptr);

// Returns [device] for this rank; device.kinds may set its kind.
DeviceConfig device_on(const DeviceConfig& config, const HostSlot& slot);
// Returns the device options of this rank: threads, GPU index, memory limit. Opens no device.
DeviceOptions device_options(const DeviceConfig& config, const HostSlot& slot, std::string* warning = nullptr);

// Marks the start of a run in a process that makes several runs in turn; the run's duration and peak memory
// (base/peak_memory.hpp) count from it. Without a call the run began with the process. One thread calls it, while no
// run is in progress.
void begin_run();
double since_run_start_s();         // process start by the kernel's clock, in ticks of 10 ms; execv does not change it
std::string command_line();         // command of this process; words with special characters are quoted
std::string job_id();               // job of Slurm, PBS or LSF; "" outside of one
bool slurm_job_without_gpus();      // the job requested no GPU, as far as its environment tells
std::string now_utc_text();         // "2025-01-31T12:34:56Z"
std::string now_utc_minute_text();  // "2025-01-31 12:34"

}  // namespace echelon::inline job
