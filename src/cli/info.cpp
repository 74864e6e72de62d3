// echelon info: what this build is and what this machine offers. Starts no MPI and needs no GPU.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/memory_text.hpp"
#include "cli/options.hpp"
#include "comm/mpi/world.hpp"
#include "device/device.hpp"
#include "device/peak_rate.hpp"
#include "exchange/strategy.hpp"
#include "h5/file.hpp"
#include "job/launch.hpp"

namespace echelon::cli {
namespace {

std::string device_text(const std::string& kind) {
  try {
    DeviceOptions options;
    options.threads = kind == "cuda" ? 1 : usable_cores();
    return open_device(kind, options)->describe();
  } catch (const Error& error) {
    return fmt::format("not available: {}", error.what());
  }
}

// By cpuid, as far as the operating system permits their use.
std::string half_precision_text() {
  std::vector<std::string> has;
  if (__builtin_cpu_supports("avx512bf16")) has.emplace_back("AVX512_BF16");
  if (__builtin_cpu_supports("avx512fp16")) has.emplace_back("AVX512_FP16");
  if (__builtin_cpu_supports("amx-bf16")) has.emplace_back("AMX_BF16");
  if (has.empty()) return "this processor has none of AVX512_BF16, AVX512_FP16 and AMX_BF16";
  return fmt::format("this processor has {}; echelon computes in halves on GPUs alone", fmt::join(has, ", "));
}

// On one thread.
std::string products_text() {
  const std::unique_ptr<Device> device = open_device("onednn", {.threads = 1});
  return fmt::format("{:.0f} GFLOP/s on one thread, in large matrix products, measured now",
                     peak_flops(*device, DType::f32, DType::f32) / 1e9);
}

}  // namespace

int run_info(const InfoOptions& options) {
  Table table({"what", "value"});
  table.row({"version", fmt::format("echelon {} ({})", kVersion, commit())});
  table.row({"host", host_name()});
  table.row({"cores", fmt::format("{} usable by this process", usable_cores())});
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
