// How this process was started, and what is its share of the machine.
#pragma once

#include <string>

#include "comm/transport.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"

namespace echelon::inline job {

// Before anything else of a run: refuses a CPU without AVX2, FMA and BMI2 (EnvironmentError with the cure), and starts
// the program once more with OMP_WAIT_POLICY=passive and a short GOMP_SPINCOUNT unless they are set, because idle
// OpenMP teams that spin slow the engine's thread down. Does not return in that case.
void prepare_process();

// True where mpirun, or srun with PMI, started this process.
bool under_launcher();
// A rank on its host.
struct HostSlot {
  int rank = 0;
  int ranks = 1;
  int hosts = 1;
  int local_rank = 0;   // among the ranks of its host
  int local_ranks = 1;  // on its host
  std::string host;
};
HostSlot host_slot_of(const Transport& transport);

int usable_cores();
// device.threads, or the cores that this process may use over the ranks of its host, at least 1.
int threads_of(const DeviceConfig& config, const HostSlot& slot);
// Which of `visible` GPUs a rank takes; `warning` says where GPUs stay idle or are shared.
int gpu_index(const HostSlot& slot, int visible, std::string* warning = nullptr);

// What the config's table [device] asks of this rank's device.
DeviceOptions device_options(const DeviceConfig& config, const HostSlot& slot, std::string* warning = nullptr);

double since_process_start_s();
std::string command_line();  // of this process, words that need it in quotes
std::string job_id();        // of Slurm, "" outside
std::string now_utc_text();  // "2025-01-31T12:34:56Z"

}  // namespace echelon::inline job
