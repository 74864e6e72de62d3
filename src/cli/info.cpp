// SPDX-License-Identifier: Apache-2.0
// echelon info: describes this build and what this machine offers. Starts no MPI and needs no GPU.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/cores.hpp"
#include "base/error.hpp"
#include "base/process.hpp"
#include "base/processor.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/options.hpp"
#include "comm/mpi/library.hpp"
#include "device/device.hpp"
#include "device/onednn/onednn.hpp"
#include "device/peak_rate.hpp"
#include "exchange/entry.hpp"
#include "h5/file.hpp"
#include "job/launch.hpp"
#include "parallel/memory_limit.hpp"

namespace echelon::cli {
namespace {

std::string device_text(const std::string& kind) {
  try {
    DeviceOptions options;
    options.threads = kind == "cuda" ? 1 : threads_of({}, {});
    return open_device(kind, options)->describe();
  } catch (const Error& error) {
    return fmt::format("not available: {}", error.what());
  }
}

std::string half_precision_text() {
  const char* bf16 = multiplies_halves(DType::bf16) ? "runs by AVX512_BF16" : "needs device.emulate_halves = true";
  const char* f16 = multiplies_halves(DType::f16) ? "runs by AMX_FP16"
                                                  : "needs AMX_FP16 and oneDNN 3 or device.emulate_halves = true";
  return fmt::format("{}; on device onednn device.dtype = \"bf16\" {}, \"f16\" {}", half_instructions_text(), bf16,
                     f16);
}

// Measured on one thread.
std::string products_text() {
  const std::unique_ptr<Device> device = open_device("onednn", {.threads = 1});
  return fmt::format("{:.0f} GFLOP/s on one thread, in large matrix products, measured now",
                     peak_flops(*device, DType::f32, DType::f32) / 1e9);
}

int print_strategies() {
  for (const StrategyCase& one : strategy_cases()) {
    const nlohmann::ordered_json line = {{"name", one.name},           {"strategy", one.strategy},
                                         {"family", one.family},       {"sets", one.sets},
                                         {"by_timing", one.by_timing}, {"equals_one", one.equals_one}};
    std::puts(line.dump().c_str());
  }
  return kExitOk;
}

}  // namespace

int run_info(const InfoOptions& options) {
  if (options.strategies) return print_strategies();
  Table table({"what", "value"});
  table.row({"version", fmt::format("echelon {} ({})", kVersion, commit())});
  table.row({"host", host_name()});
  table.row({"cores", fmt::format("{} usable by this process", usable_cores())});
  table.row({"instructions", isa_text()});
  table.row({"half precision", half_precision_text()});
  if (options.measure) table.row({"f32 products", products_text()});
  table.row({"memory", bytes_text(machine_memory_bytes())});
  table.row({"MPI", mpi_version()});
  table.row({"HDF5", h5::library_version()});
  const char* tasks = std::getenv("SLURM_NTASKS");
  table.row({"Slurm", tasks
                          ? fmt::format("job {}, {} task{}", job_id(), tasks, std::string_view(tasks) == "1" ? "" : "s")
                          : "not in a job"});
  std::string why;
  const int gpus = visible_gpus(&why);
  table.row({"GPUs", gpus > 0 ? std::to_string(gpus) : fmt::format("none ({})", why)});
  for (const std::string& kind : device_kinds())
    if (kind != "auto") table.row({"device " + kind, device_text(kind)});
  std::fputs(table.text().c_str(), stdout);
  return kExitOk;
}

}  // namespace echelon::cli
