// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/library.hpp"

#include <dlfcn.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "comm/mpi/calls.hpp"
#include "comm/mpi/fabric_settings.hpp"
#include "comm/mpi/tcp_settings.hpp"

namespace echelon::inline comm {
namespace {

constexpr std::string_view kOpenMpi = "Open MPI";

// A family of libraries: how the text of its version begins, and how its ranks find each other under Slurm. The first
// whose `known_by` is in the text counts.
struct Family {
  std::string_view known_by, name, suffix, under_slurm;
};
constexpr std::array<Family, 5> kFamilies = {{
    {"Open MPI", kOpenMpi, ".openmpi", "srun --mpi=pmix echelon ...   (or mpirun echelon ... inside the allocation)"},
    {"CRAY MPICH", "Cray MPICH", "", "srun --mpi=cray_shasta echelon ..."},
    {"Intel(R) MPI", "Intel MPI", "",
     "I_MPI_PMI_LIBRARY=<Slurm's libpmi2.so> srun --mpi=pmi2 echelon ...   (or mpirun echelon ... inside the "
     "allocation)"},
    {"MVAPICH", "MVAPICH", "", "srun --mpi=pmi2 echelon ..."},
    {"MPICH", "MPICH", ".mpich", "srun --mpi=pmi2 echelon ...   (or mpirun echelon ... inside the allocation)"},
}};

const Family* family_of(std::string_view text) {
  for (const Family& family : kFamilies)
    if (text.find(family.known_by) != std::string_view::npos || text.starts_with(family.name)) return &family;
  return nullptr;
}

// The mpirun that was installed with the library; "" if none is found.
std::string mpirun_of(std::string_view suffix) {
  namespace fs = std::filesystem;
  Dl_info library{};
  if (::dladdr(reinterpret_cast<void*>(&MPI_Init), &library) == 0 || library.dli_fname == nullptr) return "";
  std::error_code error;
  fs::path folder = fs::canonical(library.dli_fname, error).parent_path();
  for (int level = 0; !error && level < 4 && folder.has_relative_path(); ++level, folder = folder.parent_path())
    for (const std::string& name : {"mpirun" + std::string(suffix), std::string("mpirun")})
      if (const fs::path found = folder / "bin" / name; fs::exists(found, error)) return found.string();
  return "";
}

}  // namespace

std::string library_name(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const Family* family = family_of(line);
  if (family == nullptr) return std::string(line.substr(0, line.find(',')));
  std::size_t after = line.find(family->known_by);
  after = after == std::string_view::npos ? 0 : after + family->known_by.size();
  while (after < line.size() && std::isdigit(static_cast<unsigned char>(line[after])) != 0) ++after;  // MVAPICH2
  const std::size_t digit = line.find_first_of("0123456789", after);
  if (digit == std::string_view::npos) return std::string(family->name);
  std::size_t end = digit;
  while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 || line[end] == '.')) ++end;
  return std::string(family->name) + " " + std::string(line.substr(digit, end - digit));
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return library_name(text);
}

bool is_open_mpi() { return mpi_version().starts_with(kOpenMpi); }

void set_mpi_defaults() {
  if (!is_open_mpi()) return;
  set_tcp_defaults();
  set_fabric_defaults();
}

std::string chosen_transports_text() {
  if (!is_open_mpi()) return "";
  std::string out;
  for (const char* name : {"pml", "btl", "btl_tcp_if_include", "btl_tcp_if_exclude", "mtl"})
    if (const char* value = std::getenv((std::string("OMPI_MCA_") + name).c_str()))
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, value);
  return out.empty() ? "" : fmt::format("Open MPI was asked for {}\n", out);
}

std::string start_command(const std::string& library, bool slurm) {
  const Family* family = family_of(library);
  if (slurm) return std::string(family != nullptr ? family->under_slurm : "srun --mpi=pmi2 echelon ...");
  const std::string path = mpirun_of(family != nullptr ? family->suffix : "");
  return path.empty() ? fmt::format("the mpirun of {}", library) : path + " -n N echelon ...";
}

std::string start_command(const std::string& library, const LauncherTraits& launcher) {
  return start_command(library, std::string_view(launcher.name) == "srun");
}

}  // namespace echelon::inline comm
