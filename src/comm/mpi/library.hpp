// SPDX-License-Identifier: Apache-2.0
// Which MPI library this program runs on, and the settings that it starts with.
#pragma once

#include <string>
#include <string_view>

#include "base/launchers.hpp"

namespace echelon::inline comm {

// Whether the library is Open MPI, which has settings of its own; may be called before MPI starts.
bool is_open_mpi();
// Returns "Open MPI 4.1.4", "MPICH 4.0.2", "Intel MPI 2021.18", "Cray MPICH 8.1.29"; may be called before MPI starts.
std::string mpi_version();
// The same of the text that MPI_Get_library_version returns; the first line of a text of an unknown library.
std::string library_name(std::string_view text);

// Sets defaults of Open MPI (tcp_settings.hpp, fabric_settings.hpp); nothing for other libraries. Must be called before
// MPI starts.
void set_mpi_defaults();
// Returns "Open MPI was asked for btl = tcp\n", the transports that the user chose; "" without a choice.
std::string chosen_transports_text();

// The command that starts ranks which find each other: "srun --mpi=pmix echelon ...   (or ..)" where `slurm`, else the
// path of the library's mpirun where one is found near the library: "/opt/mpich/bin/mpirun -n N echelon ...".
std::string start_command(const std::string& library, bool slurm);
// The same where this launcher has started ranks that do not find each other.
std::string start_command(const std::string& library, const LauncherTraits& launcher);

}  // namespace echelon::inline comm
