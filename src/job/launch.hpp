// How this process was started, and its share of the machine: CPU features, threads, GPU, launcher, job.
#pragma once

#include <string>

#include "comm/transport.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"

namespace echelon::inline job {

// Before anything else of a run: refuses a CPU without AVX2, FMA and BMI2 (EnvironmentError with the remedy), and
// executes the program again (execv, same PID) with OMP_WAIT_POLICY=passive and GOMP_SPINCOUNT=1000 unless they are
// set, because OpenMP reads them before main and idle teams that spin slow down the engine's thread. Does not return in
// that case; where execv fails, the run continues, slower. Sets defaults of MPI (comm/mpi/tcp_settings.hpp and
// fabric_settings.hpp).
void prepare_process();

// True where mpirun, or srun with PMI, started this process (by its environment; MPI need not be started).
bool under_launcher();
// This process's rank by the launcher's environment (base/process.hpp), before MPI is started; null where it has none.
const char* rank_in_environment();
// The position of a rank on its host.
struct HostSlot {
  int rank = 0;
  int ranks = 1;
  int hosts = 1;
  int local_rank = 0;   // among the ranks of its machine
  int local_ranks = 1;  // on its machine
  std::string host;
  int machine = 0;  // whose cores, GPUs and disks it shares; other than its host where hosts are groups of ranks
};
// A rank among those of its host that share its cores and GPUs.
struct LocalPlace {
  int rank = 0, ranks = 1;
};
HostSlot host_slot_of(const Transport& transport);

// device.threads, or the cores that this process may use over the ranks of its host, at least 1 and at most the
// threads that OpenMP may start.
int threads_of(const DeviceConfig& config, const HostSlot& slot);
// Index of the GPU of a rank: local_rank mod `visible`; 0 where none is visible. `warning` gets a text where GPUs of
// the host stay idle or are shared, on the first rank of the host.
int gpu_index(const HostSlot& slot, int visible, std::string* warning = nullptr);

// [device] of this rank: with its kind where device.kinds names one by rank.
DeviceConfig device_on(const DeviceConfig& config, const HostSlot& slot);
// Options of [device] for this rank: threads, GPU index, memory limit. Opens no device.
DeviceOptions device_options(const DeviceConfig& config, const HostSlot& slot, std::string* warning = nullptr);

// For a process that makes several runs, one after another: one of them begins here, and with it the time since its
// start and its peak memory (base/peak_memory.hpp). Without a call the run began with the process. By one thread, while
// no run is under way.
void begin_run();
double since_run_start_s();         // of a process's start by the kernel's clock, in ticks of 10 ms; execv keeps it
std::string command_line();         // of this process, words with special characters quoted
std::string job_id();               // of Slurm, PBS or LSF, "" outside
bool slurm_job_without_gpus();      // in a job that asked for none, as far as its environment tells
std::string now_utc_text();         // "2025-01-31T12:34:56Z"
std::string now_utc_minute_text();  // "2025-01-31 12:34"

}  // namespace echelon::inline job
