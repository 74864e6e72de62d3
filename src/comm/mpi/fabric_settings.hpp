// Which transports Open MPI tries at its start. Its matching transports (mtl: ofi, psm, psm2) drive fabrics with cards
// of their own; loading their libraries takes 0.15 s or more of every start, also where a host has no such card. There
// they are left out (OMPI_MCA_mtl), unless the user has chosen: OMPI_MCA_mtl or OMPI_MCA_pml, which `mpirun --mca` sets
// too.
#pragma once

#include <string>

namespace echelon::inline comm {

// Before MPI is started.
void set_fabric_defaults();

// Before MPI is started, for runs that go on without lost ranks: within a host, messages are copied through memory that
// both ranks have, and never read from the memory of the other process, which may be gone (Open MPI 4.1: "Read -1,
// expected 38280", and an error of MPI). OMPI_MCA_btl_vader_single_copy_mechanism, unless the user has set it.
void copy_through_shared_memory();

// Whether the host whose files lie below `root` has a card of InfiniBand, RoCE, EFA, Omni-Path, Slingshot or Aries.
bool has_fabric_card(const std::string& root = "/");

}  // namespace echelon::inline comm
