// SPDX-License-Identifier: Apache-2.0
// Selects the transports that Open MPI tries at its start. Its matching transports (mtl: ofi, psm, psm2) drive fabrics
// with special cards; loading their libraries adds 0.15 s or more to every start, even on a host without such a card.
// On such hosts they are left out (OMPI_MCA_mtl), unless the user has chosen by OMPI_MCA_mtl or OMPI_MCA_pml, which
// `mpirun --mca` sets too.
#pragma once

#include <string>

namespace echelon::inline comm {

// Must be called before MPI is started.
void set_fabric_defaults();

// Must be called before MPI is started, for runs that continue without lost ranks. Within a host, messages are then
// copied through memory that both ranks map, never read from the memory of the other process, which may be gone (Open
// MPI 4.1: "Read -1, expected 38280", and an MPI error). Sets OMPI_MCA_btl_vader_single_copy_mechanism, unless the user
// has set it.
void copy_through_shared_memory();

// Whether the host whose files are below `root` has a card of InfiniBand, RoCE, EFA, Omni-Path, Slingshot or Aries.
bool has_fabric_card(const std::string& root = "/");

}  // namespace echelon::inline comm
