// Which transports Open MPI tries at its start. Its matching transports (mtl: ofi, psm, psm2) drive fabrics with cards
// of their own; loading their libraries takes 0.15 s or more of every start, also where a host has no such card. There
// they are left out (OMPI_MCA_mtl), unless the user has chosen: OMPI_MCA_mtl or OMPI_MCA_pml, which `mpirun --mca` sets
// too.
#pragma once

#include <string>

namespace echelon::inline comm {

// Before MPI is started.
void set_fabric_defaults();

// Whether the host whose files lie below `root` has a card of InfiniBand, RoCE, EFA, Omni-Path, Slingshot or Aries.
bool has_fabric_card(const std::string& root = "/");

}  // namespace echelon::inline comm
